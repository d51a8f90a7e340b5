"""`bert-tf push`: a model as a repository of the Hugging Face Hub, in one commit."""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bert_tf
from bert_tf.checkpoints import conversion, download, heads
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.of_run import run_of
from bert_tf.console import escaped, logger
from bert_tf.dependencies import optional
from bert_tf.errors import UserError
from bert_tf.io.atomic import temporary_folder
from bert_tf.io.files import is_there
from bert_tf.tasks import from_checkpoint

CARD = "README.md"
_TARGET = re.compile(r"hf://([\w.-]+/[\w.-]+?)(?:@([\w./-]+))?", re.ASCII)
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]*")
# The Hub's names of what models do, by the names of families; None is an encoder without a head.
_PIPELINES = {
    None: "feature-extraction",
    "classification": "text-classification",
    "multi_label_classification": "text-classification",
    "regression": "text-classification",
    "question_answering": "question-answering",
    "token_classification": "token-classification",
    "multiple_choice": "multiple-choice",
    "reranking": "text-ranking",
    "zero_shot": "zero-shot-classification",
    "masked_lm": "fill-mask",
    "embedding": "sentence-similarity",
}
_KEPT = ("license", "language", "base_model")
_SENTENCE = "sentence-transformers"


def push(
    source: str | os.PathLike,
    target: str,
    dry_run: bool = False,
    private: bool = False,
    revision: str | None = None,
    license: str | None = None,
) -> None:
    """Writes a model and a card to the Hub, for transformers or sentence-transformers."""
    match = _TARGET.fullmatch(target)
    if not match or revision not in (None, match[2] or revision):
        raise UserError(
            f"{target} is not of the form hf://org/name or hf://org/name@branch"
            + (f", with the branch of --revision {revision}" if match else "")
        )
    name, revision = match[1], revision or match[2]
    if license is not None and not _LICENSE.fullmatch(license):
        raise UserError(
            f"--license {license!r} is not a name of the Hugging Face Hub; give one such as "
            "apache-2.0, mit or other"
        )
    hub = optional("huggingface_hub", "hub", "bert-tf push")
    from huggingface_hub.utils import validate_repo_id

    with _explained(name):
        validate_repo_id(name)
    if not dry_run and hub.get_token() is None:
        raise UserError(
            "nobody is logged in to the Hugging Face Hub; run hf auth login with a token that may "
            "write, or set HF_TOKEN"
        )
    checkpoint = from_checkpoint.find(source)
    of_sentences = heads.of(checkpoint.description.model).sentence_transformers
    form = "sentence_transformers" if of_sentences == heads.EMBEDDER else "huggingface"
    with temporary_folder() as scratch:
        folder = scratch / "model"
        conversion.convert(source, folder, form, lambda _: checkpoint)
        card = _card(hub, checkpoint, source, name, license)
        (folder / CARD).write_text(card, encoding="utf-8", newline="\n")
        if dry_run:
            for file in sorted(each for each in folder.rglob("*") if each.is_file()):
                print(f"{file.stat().st_size:>13,}  {file.relative_to(folder)}")
            print(f"\n{card}", end="")
            return
        api = hub.HfApi()
        message = f"Upload a model of bert_tf {bert_tf.__version__}"
        with _explained(name):
            api.create_repo(name, private=private or None, exist_ok=True)
            if private and not api.model_info(name).private:
                raise UserError(
                    f"{name} is a public repository already; remove --private, or make it private "
                    "in its settings on the Hugging Face Hub"
                )
            if revision is not None:
                api.create_branch(name, branch=revision, exist_ok=True)
            done = api.upload_folder(
                repo_id=name, folder_path=folder, revision=revision, commit_message=message
            )
    place = f"hf://{name}" + (f"@{revision}" if revision else "")
    logger.info(f"{done.commit_url}: open it with bert_tf.load({place!r})")


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turns the errors of huggingface_hub into one sentence."""
    from huggingface_hub import errors

    try:
        yield
    except UserError:
        raise
    except errors.HFValidationError as error:
        raise UserError(f"{name} cannot be the name of a repository ({error})") from None
    # The client of large files wraps errors in others, up to RuntimeError.
    except (errors.HTTPError, OSError, RuntimeError, ValueError) as error:
        found: BaseException | None = error
        while found is not None and getattr(found, "response", None) is None:
            found = found.__cause__
        status = getattr(getattr(found, "response", None), "status_code", None)
        first = str(found or error).strip().splitlines() or [type(error).__name__]
        said = (
            f"{name} cannot be pushed ({first[0]}); check the network, and run the same command "
            "again: a push is one commit, so nothing is there in part"
        )
        remedy = "run hf auth login with a token that may write"
        if status == 401:
            said = f"the Hugging Face Hub does not accept the token; {remedy}"
        if status in (403, 404):
            said = (
                f"the token may not write to {name} on the Hugging Face Hub; choose a name of "
                f"yours, or {remedy}"
            )
        raise UserError(said) from None


def _card(
    hub: Any, checkpoint: Checkpoint, source: str | os.PathLike, name: str, license: str | None
) -> str:
    """The model card, with the data that the Hub reads at its top."""
    description, encoder = checkpoint.description, checkpoint.description.encoder
    origin = from_checkpoint.origin_of(checkpoint, source)
    # The Hub's name of the checkpoint that the model was trained from.
    configuration = origin.configuration or {}
    first = str((configuration.get("init") or {}).get("checkpoint") or origin.source)
    base = first.removeprefix("hf://").partition("@")[0]
    is_base = download.is_name(base) and not os.path.exists(first)
    known: dict[str, Any] = {"base_model": base if is_base else None}
    known |= _of_card(hub, checkpoint.folder / CARD)
    known |= {"license": license} if license else {}
    if not known.get("license"):
        logger.warning("the model card has no license; add one with --license, such as apache-2.0")
    if run_of(checkpoint.folder) and origin.metrics is None:
        logger.warning(f"{source} has no final metrics of this checkpoint, nor has the model card")
    family = from_checkpoint.family_at(checkpoint)
    pipeline = _PIPELINES.get(family.name if family else None)
    for_sentences = bool(heads.of(description.model).sentence_transformers)
    tags = ["bert_tf", encoder.model_type] + [_SENTENCE] * for_sentences
    data, metrics = configuration.get("data") or {}, dict(origin.metrics or {})
    # Of a local path, only the last name is published.
    paths = data.get("path") or "unknown"
    path = paths if isinstance(paths, str) else paths[0]
    of_data = path if data.get("format") in ("tfds", "datasets") else Path(path).name
    results = [
        hub.EvalResult(pipeline, of_data, of_data, metric, value, dataset_split="dev")
        for metric, value in metrics.items()
    ]
    header = hub.ModelCardData(
        **known,
        library_name=_SENTENCE if for_sentences else "transformers",
        pipeline_tag=pipeline,
        tags=[*tags, family.name.replace("_", "-")] if family else tags,
        metrics=[*metrics] or None,
        **({"model_name": name, "eval_results": results} if pipeline and results else {}),
    )
    lines = ["---", header.to_yaml(), "---", "", f"# {name.partition('/')[2]}", ""]
    lines += [
        f"A `{description.model}` of bert_tf {bert_tf.__version__}: "
        f"{encoder.model_type}, layers: {encoder.num_hidden_layers}, width: {encoder.hidden_size}, "
        f"pieces in the vocabulary: {encoder.vocab_size:,}."
    ]
    opens = f'import bert_tf\n\nmodel = bert_tf.load("hf://{name}")'
    lines += ["", f"```python\n{opens}\n```", "", f"```sh\nbert-tf serve hf://{name}\n```"]
    settings = dict(description.settings) | (
        {"labels": description.labels} if description.labels else {}
    )
    shown = {"Metrics": metrics, "Settings": settings, "Training": configuration.get("train")}
    for title, fields in shown.items():
        if fields:
            text = escaped(json.dumps(fields, indent=2, ensure_ascii=False), "\n")
            lines += ["", f"## {title}", "", f"```json\n{text}\n```"]
    return "\n".join(lines) + "\n"


def _of_card(hub: Any, path: Path) -> dict[str, Any]:
    """What the card next to a checkpoint says, if there is one."""
    if not is_there(path, "model card"):
        return {}
    try:
        fields = hub.metadata_load(path) or {}
    except Exception as error:  # errors of YAML and of the library have no common class
        first = str(error).splitlines()[0]
        raise UserError(f"the model card {path} cannot be read ({first}); correct it") from None
    return {name: fields[name] for name in _KEPT if fields.get(name)}
