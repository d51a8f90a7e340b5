"""`bert-tf export`: writes the model at a path as a SavedModel, a LiteRT file or an ONNX file."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import keras

from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.embedder import poolings
from bert_tf.checkpoints.of_run import METRICS_FILE, run_of
from bert_tf.config.run import FinetuningRun
from bert_tf.console import logger
from bert_tf.encoder.config import POLICIES
from bert_tf.errors import UserError
from bert_tf.export import KINDS, LITERT, ONNX, SAVED_MODEL, Inputs, misplaced
from bert_tf.export.calibration import rows_of_file, rows_of_training
from bert_tf.export.litert.form import Row
from bert_tf.export.saving import save_hub, save_model
from bert_tf.export.served_model import Device, Form
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.tasks import from_checkpoint, loading, registry
from bert_tf.tasks.task_model import TaskModel
from bert_tf.text import Tokenizer

# The families of the kinds that a checkpoint need not have been fine-tuned for.
_FAMILIES = {"mlm": "masked_lm", "nsp": "next_sentence", "embedding": "embedding"}


def export_run(
    path: str | os.PathLike,
    out: str | os.PathLike,
    kind: str = "task",
    pooling: str | Sequence[str] | None = None,
    precision: str | None = None,
    freeze: bool = False,
    version: int | None = None,
    device: Device = "cpu",
    pair: bool = False,
    unanswerable: bool = False,
    max_length: int | None = None,
    labels: Sequence[str] | None = None,
    format: str = SAVED_MODEL,
    inputs: Inputs | None = None,
    lengths: Sequence[int] | None = None,
    calibration: str | None = None,
    truncate_dim: int | None = None,
    vectors: str | None = None,
    abstain: float | None = None,
) -> Path:
    """Writes the model at `path` as a SavedModel, a LiteRT file or an ONNX file; prints where.

    Args:
        path: what `bert_tf.load` opens; for kinds other than "task", any checkpoint.
        out: the folder or the file to write.
        kind: one of `bert_tf.export.KINDS`: "task" is what the checkpoint was fine-tuned for; "mlm"
            and "nsp" are the heads of pre-training, "embedding" the encoder, and "hub" the encoder
            and its preprocessor as TF Hub has them.
        pooling: of kind "embedding", see `TextEmbedder`; None is that of an embedder's checkpoint,
            or else "mean".
        precision: "float32" (the default) or "int8"; of a SavedModel also "bfloat16", of a LiteRT
            file also "float16".
        freeze, version, device, inputs, lengths: see `TaskModel.export`.
        pair, unanswerable, max_length, labels: for a bare checkpoint, whether its inputs are pairs
            of texts, whether a context may hold no answer, most tokens of an input, and names of
            the classes.
        format: "tf_saved_model", "litert" or "onnx".
        calibration: with precision "int8", a file of texts, as `bert-tf predict` reads them; a
            SavedModel of a run needs none, as it takes rows of the run's training data.
        truncate_dim, vectors: of an embedder, see `TextEmbedder`; None keeps its own.
        abstain: the least probability of an answer, see `TextClassifier`.

    Returns:
        The folder or file that was written.

    Raises:
        UserError: `path` does not exist, cannot be exported like this, or `out` cannot be written.
    """
    if pooling is not None and kind != "embedding":
        raise UserError("--pooling is for --kind embedding; remove --pooling")
    if kind not in KINDS:
        raise UserError(f"unknown kind {kind!r}; choose one of {', '.join(KINDS)}")
    if kind != "task" and (labels or pair or unanswerable or abstain is not None):
        raise UserError(
            f"--labels, --pair, --unanswerable and --abstain are for tasks, not for --kind {kind}"
        )
    given = {"max_length": max_length, "pooling": pooling, "abstain": abstain}
    given |= {"truncate_dim": truncate_dim, "vectors": vectors}
    given |= {"pair": pair or None, "unanswerable": unanswerable or None}
    settings = {name: value for name, value in given.items() if value is not None}
    precision = precision or "float32"
    options: dict[str, Any] = {"freeze": freeze, "device": device, "version": version}
    options |= {"inputs": inputs, "lengths": lengths, "calibration": calibration}
    if wrong := misplaced(format, options):
        name, other = wrong
        option = f"--device {device}" if name == "device" else f"--{name}"
        raise UserError(f"{option} is for --format {other}; remove {option}")
    if format != SAVED_MODEL and kind == "hub":
        raise UserError(f"--kind hub is for --format {SAVED_MODEL}; remove --format {format}")
    if kind == "hub" and inputs is not None:
        raise UserError("--kind hub writes a model of strings and one of ids; remove --inputs")
    if kind == "hub" and (precision == "int8" or calibration is not None):
        raise UserError("--kind hub must stay trainable; choose another --precision than int8")
    if format != SAVED_MODEL and precision == "bfloat16":
        raise UserError(f"--precision bfloat16 is for --format {SAVED_MODEL}")
    if format == ONNX and precision == "int8":
        raise UserError(f"--precision int8 is for --format {SAVED_MODEL} or {LITERT}")
    if format != LITERT and precision == "float16":
        raise UserError(f"--precision float16 is for --format {LITERT}")
    checkpoint = from_checkpoint.find(path)
    if kind == "hub":
        form = Form(precision, freeze, device)
        folder = _export_hub(checkpoint, path, out, max_length, form, version)
        ending = "" if version is None else str(version)
        parts = " and ".join(str(folder / name / ending) for name in ("preprocessor", "encoder"))
        logger.info(f"{parts}: load them with hub.load")
        return folder
    if kind == "task":
        model = _fine_tuned(checkpoint, path, labels, settings)
    else:
        model = _of_kind(checkpoint, path, kind, settings)
    rows = None if calibration is None else rows_of_file(model, calibration)
    if format == SAVED_MODEL and precision == "int8" and rows is None:
        rows = _training_rows(checkpoint, model, path)
    form = Form(precision, freeze, device, rows)
    place = save_model(model, out, format, inputs, form, version, lengths)
    use = "use it with ONNX Runtime" if format == ONNX else "use it with bert-tf predict"
    if format == SAVED_MODEL:
        card = place / "assets.extra" / "model_card.md"
        logger.info(f"{place}: {use}; {card} describes its inputs and outputs")
    else:
        logger.info(f"{place}: {place.stat().st_size / 1e6:.1f} MB; {use}")
    return place


def _training_rows(checkpoint: Checkpoint, model: TaskModel, path: str | os.PathLike) -> list[Row]:
    """Some rows that a run was trained on, for the ranges of integers."""
    run = run_of(checkpoint.folder)
    config = None if run is None else from_checkpoint.trained_with(run)
    if not isinstance(config, FinetuningRun):
        raise UserError(
            f"{path} is not a fine-tuning run, so --precision int8 requires --calibration FILE: "
            "a few hundred texts like those that the model will read"
        )
    task = registry.family(config.task).task_class()(config, model.labels)
    return rows_of_training(task, model)


def _fine_tuned(
    checkpoint: Checkpoint,
    path: str | os.PathLike,
    labels: Sequence[str] | None,
    settings: dict[str, Any],
) -> TaskModel:
    """The model of a checkpoint. Prints assumed settings, and warns if a threshold is missing."""
    name = checkpoint.description.model
    if registry.family_of(name) is None:
        *others, last = _kinds_without_task(checkpoint)
        raise UserError(
            f"{path} was not fine-tuned for a task ({name}); choose --kind "
            f"{', '.join(others)} or {last}"
        )
    # The weights are kept as they are; the export computes in its own precision.
    loaded = loading.load(path, labels=labels, dtype=POLICIES["float32"], **settings)
    model = cast(TaskModel, loaded)  # a checkpoint's model, as checked above
    known = checkpoint.description.settings | settings
    assumed = {"max_length": model.max_length, "pair": "false", "unanswerable": "false"}
    said = [
        f"{name} {value} (--{name.replace('_', '-')})"
        for name, value in assumed.items()
        if name in model.setting_names and name not in known
    ]
    if said:
        logger.info(f"{path} does not describe its inputs; assumed: {', '.join(said)}")
    if getattr(model, "unanswerable", False) and model.null_threshold is None:
        run, is_last = run_of(checkpoint.folder), model.origin.metrics is not None
        if run is None:
            why = "belongs to no run"
            instead = f"to set one, export bert_tf.load({str(path)!r}, null_threshold=…) in Python"
        elif (run / METRICS_FILE).is_file() and not is_last:
            why = "is not the last checkpoint of its run"
            instead = "set data.null_threshold, or export the run"
        else:
            why, instead = "is not finished", "set data.null_threshold, or finish the run"
        logger.warning(
            f"{path} {why}, so its best null_threshold is unknown and 0.0 is used; {instead}"
        )
    return model


def _of_kind(
    checkpoint: Checkpoint, path: str | os.PathLike, kind: str, settings: dict[str, Any]
) -> TaskModel:
    """A checkpoint as the model of a task that it was not fine-tuned for."""
    cls = registry.family(_FAMILIES[kind]).model_class()
    name = checkpoint.description.model
    if kind not in _kinds_without_task(checkpoint) and name != cls.__name__:
        raise UserError(
            f"{path} ({name}) has no pre-training head for --kind {kind}; give a "
            "pre-training run, or a checkpoint with its heads"
        )
    if "max_length" not in settings and name != cls.__name__:
        settings |= _length_of_run(checkpoint)
    tokenizer = Tokenizer.from_checkpoint(checkpoint)
    dtype = POLICIES["float32"]
    model = from_checkpoint.built(cls, checkpoint, path, None, settings, tokenizer, dtype=dtype)
    report = checkpoint.fill(model)
    if "pooled" in poolings(settings.get("pooling", "mean")):
        if from_checkpoint.lacks_pooler(report):
            raise UserError(f"{path} has no pooler; choose --pooling mean or cls")
        trained = from_checkpoint.build(checkpoint, path)
        _check_pooler(checkpoint, path, trained, "choose --pooling mean or cls")
    from_checkpoint.check_head(report, model, path)
    from_checkpoint.say(report, path)
    model.origin = from_checkpoint.origin_of(checkpoint, path)
    return model


def _export_hub(
    checkpoint: Checkpoint,
    path: str | os.PathLike,
    out: str | os.PathLike,
    max_length: int | None,
    form: Form,
    version: int | None,
) -> Path:
    model = from_checkpoint.build(checkpoint, path)
    report = checkpoint.fill(model, getattr(model, "labels", ()))
    from_checkpoint.check_head(report, model, path, uses_pooler=False)
    from_checkpoint.say(report, path)
    if from_checkpoint.lacks_pooler(report):
        logger.warning(f"{path} has no pooler; pooled_output is random until it is trained")
    else:
        _check_pooler(checkpoint, path, model, "use sequence_output")
    max_length = max_length or _length_of_run(checkpoint).get("max_length")
    tokenizer = Tokenizer.from_checkpoint(checkpoint)
    origin = from_checkpoint.origin_of(checkpoint, path)
    return save_hub(model, tokenizer, out, form, version, origin, max_length)


def _length_of_run(checkpoint: Checkpoint) -> dict[str, int]:
    """The longest inputs that a run was trained on; {} where that is not known."""
    run = run_of(checkpoint.folder)
    if run is None:
        return {}
    train = from_checkpoint.trained_with(run).train
    return {"max_length": getattr(train, "long_length", None) or train.max_length}


def _kinds_without_task(checkpoint: Checkpoint) -> list[str]:
    """The kinds that any checkpoint has, and those of its pre-training heads."""
    description, kinds = checkpoint.description, ["hub", "embedding"]
    if description.model == PreTrainer.__name__:
        kinds = ["mlm"] + ["nsp"] * bool(description.head.get("next_sentence")) + kinds
    return kinds


def _check_pooler(
    checkpoint: Checkpoint, path: str | os.PathLike, model: keras.Model, instead: str
) -> None:
    """Warns if the model of a checkpoint was trained without its pooler."""
    if not getattr(model, "uses_pooler", True):
        logger.warning(
            f"{path}: this {checkpoint.description.model} was trained without the pooler, so the "
            f"pooler still has its initial weights, perhaps random ones; {instead}"
        )
