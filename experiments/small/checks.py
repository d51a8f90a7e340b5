"""Checks before many hours of work: that no file is missing or of another kind.

The folder of the results notes what they are made from, so results of other data are not added.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from bert_tf.checkpoints import reading
from bert_tf.checkpoints.plain_json import read_object
from bert_tf.config.changes import difference
from bert_tf.errors import UserError
from bert_tf.experiments.small.job import Job, Sources
from bert_tf.io.atomic import write_text
from bert_tf.runs.run_folder import RunFolder

# Some of the activations that table 7 reads are of the last four layers.
_LAYERS = 4
# A run records this value from its checkpoint or vocabulary if its file leaves it open.
_SETTLED = "tokenizer.lower_case"
_SOURCES = "sources.json"


def check(chosen: Sequence[Job], checkpoint: Path | None) -> None:
    """Checks the inputs of the jobs that are not done, and the runs that were begun.

    Args:
        chosen: the jobs.
        checkpoint: the published one, if it was given.

    Raises:
        UserError: a file is missing; the checkpoint is none or does not fit these jobs; a run was
            begun with another configuration.
    """
    to_do = [job for job in chosen if not job.makes.exists()]
    _check_given(to_do)
    readers = [job for job in to_do if checkpoint in job.given]
    if checkpoint is not None and readers:
        models = [job.config().model for job in readers]
        of_features = any(getattr(model, "features", None) for model in models)
        _check_checkpoint(checkpoint, _LAYERS if of_features else 1)
    _check_configurations(job for job in chosen if job.is_run)


def _check_given(to_do: Sequence[Job]) -> None:
    given = dict.fromkeys(path for job in to_do for path in job.given)
    missing = [str(path) for path in given if not path.exists()]
    if missing:
        raise UserError(
            f"not found: {', '.join(missing)}; add it, or use --tables to leave out what needs it"
        )


def _check_checkpoint(path: Path, layers: int) -> None:
    checkpoint = reading.find(path)
    if checkpoint.read_vocabulary() is None:
        raise UserError(f"--checkpoint {path} holds no vocabulary; put its vocab.txt into it")
    found = checkpoint.encoder.num_hidden_layers
    if found < layers:
        raise UserError(
            f"--checkpoint {path} has {found} layers; table 7 reads the last {layers}: take a "
            "larger one, or leave it out by --tables"
        )


def _check_configurations(runs: Iterable[Job]) -> None:
    changed = {}
    for job in runs:
        folder = job.makes.parent
        # A run that never saved anything begins anew, with any configuration.
        if any(folder.glob("checkpoints")) or any(folder.glob("trials/*/checkpoints")):
            then, now = RunFolder.open(folder).config, job.config()
            keys = [*difference(then, now)]
            if job.makes.exists():
                # A search that goes on may have other values; one that is done is not run again.
                both = sorted(then.searched.keys() & now.searched.keys())
                keys += [f"train.{key}" for key in both if then.searched[key] != now.searched[key]]
            if now.tokenizer.lower_case is None:
                keys = [key for key in keys if key != _SETTLED]
            if keys:
                changed[folder] = ", ".join(keys)
    if changed:
        listed = "; ".join(f"{folder} ({keys})" for folder, keys in changed.items())
        raise UserError(
            f"runs with another configuration: {listed}; set it as before, choose another --out, "
            "or delete these folders and what was made from them"
        )


def known_sources(sources: Sources) -> Sources:
    """The sources of the results in `sources.out`: those given now or before.

    Raises:
        UserError: one of them differs from the one before.
    """
    file = sources.out / _SOURCES
    before = read_object(file, "sources") if file.exists() else {}
    known = {name: Path(path) for name, path in before.items() if name in _inputs(sources)}
    for name, path in _inputs(sources).items():
        if path is not None and known.setdefault(name, path) != path:
            raise UserError(
                f"{sources.out} was made with --{name} {known[name]}, not {path}; give that, or "
                "choose another --out"
            )
    return sources._replace(**known)


def remember(sources: Sources) -> None:
    """Notes what the results in `sources.out` are made from."""
    named = {name: str(path) for name, path in _inputs(sources).items() if path is not None}
    write_text(sources.out / _SOURCES, json.dumps(named, indent=2) + "\n")


def _inputs(sources: Sources) -> dict[str, Path | None]:
    return {name: path for name, path in sources._asdict().items() if name != "out"}
