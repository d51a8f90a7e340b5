"""`bert-tf export`: what is at a path as a SavedModel that takes strings and returns answers."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import keras

from bert_tf.checkpoints.checkpoint import Checkpoint, LoadReport
from bert_tf.checkpoints.of_run import METRICS_FILE, run_of, trained_with
from bert_tf.checkpoints.tokenizer import tokenizer_of
from bert_tf.config.kinds import POLICIES
from bert_tf.errors import UserError
from bert_tf.export.model_card import Origin
from bert_tf.export.saving import Kind, check_kind, save_kind, save_task
from bert_tf.export.served_model import Device, Form
from bert_tf.models import PreTrainer
from bert_tf.progress import say, warn
from bert_tf.tasks import loading
from bert_tf.tasks.task_model import TaskModel

# Settings that are false where a checkpoint does not say how its inputs are made.
_ASSUMED = ("pair", "unanswerable")


def export_run(
    path: str | os.PathLike,
    out: str | os.PathLike,
    kind: Kind = "task",
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
        kind: see `bert_tf.export.saving`.
        pooling: of kind "embedding", see `EmbeddingService`.
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
    form = Form(precision or "float32", freeze, device)
    if kind != "task":
        if labels or pair or unanswerable:
            raise UserError(
                f"--labels, --pair and --unanswerable are for tasks, not for --kind {kind}"
            )
        folder = _export_kind(path, out, kind, pooling, max_length, form, version)
    else:
        folder = _export_task(path, out, labels, settings, form, version)
    if kind == "hub":
        ending = "" if version is None else str(version)
        parts = " and ".join(str(folder / name / ending) for name in ("preprocessor", "encoder"))
        say(f"{parts}: for hub.load")
    else:
        card = folder / "assets.extra" / "model_card.md"
        say(f"{folder}: ask it with bert-tf predict; {card} describes its inputs and outputs")
    return folder


def _export_task(
    path: str | os.PathLike,
    out: str | os.PathLike,
    labels: Sequence[str] | None,
    settings: dict[str, Any],
    form: Form,
    version: int | None,
) -> Path:
    checkpoint = loading.find(path)
    for note in checkpoint.notes:
        say(f"{path}: {note}")
    if checkpoint.description.model not in loading.TASK_MODELS:
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
            say(f"{path} does not say how its inputs are made; assumed: {', '.join(said)}")
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
        warn(f"{path} {why}, so its best null_threshold is not known and 0.0 is taken; {instead}")


def _export_kind(
    path: str | os.PathLike,
    out: str | os.PathLike,
    kind: Kind,
    pooling: str | None,
    max_length: int | None,
    form: Form,
    version: int | None,
) -> Path:
    checkpoint = loading.find(path)
    for note in checkpoint.notes:
        say(f"{path}: {note}")
    model = loading.build(checkpoint, path)
    check_kind(model, kind)
    report = checkpoint.fill(model, getattr(model, "labels", ()))
    _check_weights(report, model, path, kind, pooling)
    run = run_of(checkpoint.folder)
    origin = Origin(source=str(path))
    if run is not None:
        origin = loading.origin_of(checkpoint, path)
        train = trained_with(run).train
        max_length = max_length or getattr(train, "long_length", None) or train.max_length
    options: dict[str, Any] = {} if pooling is None else {"pooling": pooling}
    options |= {} if max_length is None else {"max_length": max_length}
    return save_kind(model, tokenizer_of(checkpoint), out, kind, form, version, origin, **options)


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
    report: LoadReport,
    model: keras.Model,
    path: str | os.PathLike,
    kind: Kind,
    pooling: str | None,
) -> None:
    """Says what a checkpoint lacks. Raises UserError where that would be served at random."""
    pooler = any(name.startswith("encoder/pooler/") for name in report.new)
    if pooler and pooling == "pooled":
        raise UserError(f"{path} has no pooler; choose --pooling mean or cls")
    loading.check_head(report, model, path, uses_pooler=kind == "nsp")
    if pooler and kind == "hub":
        warn(f"{path} has no pooler; pooled_output is random until it is trained")
    elif not getattr(model, "uses_pooler", True) and (kind == "hub" or pooling == "pooled"):
        instead = "use sequence_output" if kind == "hub" else "choose --pooling mean or cls"
        warn(
            f"{path}: this {type(model).__name__} was trained without the pooler, which is as it "
            f"was at the start, perhaps random; {instead}"
        )
