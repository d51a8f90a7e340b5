"""`bert-tf export`: what is at a path as a SavedModel that takes strings and returns answers."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from bert_tf.checkpoints.checkpoint import Checkpoint, LoadReport
from bert_tf.checkpoints.of_run import METRICS_FILE, run_of
from bert_tf.config.kinds import POLICIES
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.export.saving import save_hub, save_task
from bert_tf.export.served_model import Device, Form
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.tasks import loading, registry
from bert_tf.tasks.task_model import TaskModel
from bert_tf.text import Tokenizer

# What a checkpoint is served as.
KINDS = ("task", "hub", "mlm", "nsp", "embedding")
# The families of the kinds that a checkpoint need not have been fine-tuned for.
_FAMILIES = {"mlm": "masked_lm", "nsp": "next_sentence", "embedding": "embedding"}
# Settings that are false where a checkpoint does not say how its inputs are made.
_ASSUMED = ("pair", "unanswerable")


def export_run(
    path: str | os.PathLike,
    out: str | os.PathLike,
    kind: str = "task",
    pooling: str | None = None,
    precision: str | None = None,
    freeze: bool = False,
    version: int | None = None,
    device: Device = "cpu",
    pair: bool = False,
    unanswerable: bool = False,
    max_length: int | None = None,
    labels: Sequence[str] | None = None,
) -> Path:
    """Writes what is at `path` as a SavedModel, and says where.

    Args:
        path: what `bert_tf.load` opens; for the other kinds than "task", any checkpoint.
        out: the folder to write.
        kind: one of `KINDS`: "task" is what the checkpoint was fine-tuned for; "mlm" and "nsp"
            are the heads of pre-training, "embedding" the encoder, and "hub" the encoder and its
            preprocessor as TF Hub has them.
        pooling: of kind "embedding", see `TextEmbedder`.
        precision: "float32" (the default) or "bfloat16".
        freeze: see `TaskModel.export`.
        version: see `TaskModel.export`.
        device: see `TaskModel.export`.
        pair: for a bare checkpoint, whether its inputs are pairs of texts.
        unanswerable: for a bare checkpoint, whether a context may hold no answer.
        max_length: for a bare checkpoint, most tokens of an input.
        labels: for a bare checkpoint, names of the classes.

    Returns:
        The folder that was written.

    Raises:
        UserError: there is nothing at `path`, it cannot be exported so, or `out` cannot be written.
    """
    if pooling is not None and kind != "embedding":
        raise UserError("--pooling is for --kind embedding")
    settings: dict[str, Any] = {} if max_length is None else {"max_length": max_length}
    settings |= {"pair": True} if pair else {}
    settings |= {"unanswerable": True} if unanswerable else {}
    settings |= {} if pooling is None else {"pooling": pooling}
    form = Form(precision or "float32", freeze, device)
    if kind not in KINDS:
        raise UserError(f"unknown kind {kind!r}; choose one of {', '.join(KINDS)}")
    if kind != "task" and (labels or pair or unanswerable):
        raise UserError(f"--labels, --pair and --unanswerable are for tasks, not for --kind {kind}")
    checkpoint = loading.find(path)
    for note in checkpoint.notes:
        logger.info(f"{path}: {note}")
    if kind == "hub":
        folder = _export_hub(checkpoint, path, out, max_length, form, version)
    elif kind == "task":
        folder = _export_task(checkpoint, path, out, labels, settings, form, version)
    else:
        folder = _export_kind(checkpoint, path, out, kind, settings, form, version)
    if kind == "hub":
        ending = "" if version is None else str(version)
        parts = " and ".join(str(folder / name / ending) for name in ("preprocessor", "encoder"))
        logger.info(f"{parts}: for hub.load")
    else:
        card = folder / "assets.extra" / "model_card.md"
        logger.info(
            f"{folder}: ask it with bert-tf predict; {card} describes its inputs and outputs"
        )
    return folder


def _export_task(
    checkpoint: Checkpoint,
    path: str | os.PathLike,
    out: str | os.PathLike,
    labels: Sequence[str] | None,
    settings: dict[str, Any],
    form: Form,
    version: int | None,
) -> Path:
    if registry.family_of(checkpoint.description.model) is None:
        raise UserError(_other_kinds(checkpoint, path))
    # The weights are kept as they are; the export computes in its own precision.
    loaded = loading.load(path, labels=labels, dtype=POLICIES["float32"], **settings)
    model = cast(TaskModel, loaded)  # of a checkpoint, as was found above
    _say_assumed(checkpoint, model, path, settings)
    return save_task(model, out, form, version)


def _say_assumed(
    checkpoint: Checkpoint, model: TaskModel, path: str | os.PathLike, settings: dict[str, Any]
) -> None:
    """Says what a bare checkpoint left open, and warns of a threshold that is not known yet."""
    if not checkpoint.description.settings:
        said = [f"max_length {model.max_length} (--max-length)"] * ("max_length" not in settings)
        for name in _ASSUMED:
            if name in model.setting_names and name not in settings:
                said.append(f"{name} false (--{name})")
        if said:
            logger.info(f"{path} does not say how its inputs are made; assumed: {', '.join(said)}")
    if getattr(model, "unanswerable", False) and model.null_threshold is None:
        run, last = run_of(checkpoint.folder), model.origin.metrics is not None
        if run is None:
            why = "has none"
            instead = f"to set one, export bert_tf.load({str(path)!r}, null_threshold=…) in Python"
        elif (run / METRICS_FILE).is_file() and not last:
            why = "is not the checkpoint that its run ends with"
            instead = "set data.null_threshold, or export the run"
        else:
            why, instead = "is not finished", "set data.null_threshold, or finish the run"
        logger.warning(
            f"{path} {why}, so its best null_threshold is not known and 0.0 is taken; {instead}"
        )


def _export_kind(
    checkpoint: Checkpoint,
    path: str | os.PathLike,
    out: str | os.PathLike,
    kind: str,
    settings: dict[str, Any],
    form: Form,
    version: int | None,
) -> Path:
    """Exports a checkpoint as the object of a task that it was not fine-tuned for."""
    cls = registry.family(_FAMILIES[kind]).model_class()
    description = checkpoint.description
    has_head = kind == "embedding" or _has_head(checkpoint, cls.__name__)
    if not has_head:
        raise UserError(
            f"{path} ({description.model}) has no pre-training head for --kind {kind}; give a "
            "pre-training run, or a checkpoint with its heads"
        )
    if "max_length" not in settings and description.model != cls.__name__:
        settings |= _length_of_run(checkpoint)
    tokenizer = Tokenizer.from_checkpoint(checkpoint)
    dtype = POLICIES["float32"]
    loaded = loading.built(cls, checkpoint, path, None, settings, tokenizer, dtype=dtype)
    report = checkpoint.fill(loaded)
    _check_weights(report, checkpoint, path, settings.get("pooling"))
    loading.check_head(report, loaded, path)
    loaded.origin = loading.origin_of(checkpoint, path)
    return save_task(loaded, out, form, version)


def _export_hub(
    checkpoint: Checkpoint,
    path: str | os.PathLike,
    out: str | os.PathLike,
    max_length: int | None,
    form: Form,
    version: int | None,
) -> Path:
    model = loading.build(checkpoint, path)
    report = checkpoint.fill(model, getattr(model, "labels", ()))
    loading.check_head(report, model, path, uses_pooler=False)
    if loading.lacks_pooler(report):
        logger.warning(f"{path} has no pooler; pooled_output is random until it is trained")
    elif not getattr(model, "uses_pooler", True):
        logger.warning(_untrained_pooler(checkpoint, path, "use sequence_output"))
    max_length = max_length or _length_of_run(checkpoint).get("max_length")
    return save_hub(
        model,
        Tokenizer.from_checkpoint(checkpoint),
        out,
        form,
        version,
        loading.origin_of(checkpoint, path),
        max_length,
    )


def _has_head(checkpoint: Checkpoint, class_name: str) -> bool:
    """Whether a checkpoint has the head of masked language modelling, or of next sentences."""
    description = checkpoint.description
    if description.model == PreTrainer.__name__:
        return class_name == "MaskedLM" or bool(description.head.get("next_sentence"))
    return description.model == class_name


def _length_of_run(checkpoint: Checkpoint) -> dict[str, int]:
    """The longest inputs that a run was trained on; {} where that is not known."""
    run = run_of(checkpoint.folder)
    if run is None:
        return {}
    train = loading.trained_with(run).train
    return {"max_length": getattr(train, "long_length", None) or train.max_length}


def _other_kinds(checkpoint: Checkpoint, path: str | os.PathLike) -> str:
    """What to do with a checkpoint without a head of a task."""
    description = checkpoint.description
    kinds = ["hub", "embedding"]
    if description.model == PreTrainer.__name__:
        kinds = ["mlm"] + ["nsp"] * bool(description.head.get("next_sentence")) + kinds
    return (
        f"{path} was not fine-tuned for a task ({description.model}); choose --kind "
        f"{', '.join(kinds[:-1])} or {kinds[-1]}"
    )


def _check_weights(
    report: LoadReport, checkpoint: Checkpoint, path: str | os.PathLike, pooling: str | None
) -> None:
    """Says what the pooler of a checkpoint is worth. Raises UserError where it has none."""
    if pooling != "pooled":
        return
    if loading.lacks_pooler(report):
        raise UserError(f"{path} has no pooler; choose --pooling mean or cls")
    trained = loading.build(checkpoint, path)
    if not getattr(trained, "uses_pooler", True):
        logger.warning(_untrained_pooler(checkpoint, path, "choose --pooling mean or cls"))


def _untrained_pooler(checkpoint: Checkpoint, path: str | os.PathLike, instead: str) -> str:
    return (
        f"{path}: this {checkpoint.description.model} was trained without the pooler, which is as "
        f"it was at the start, perhaps random; {instead}"
    )
