"""Exporting from the disk: a run folder, or a checkpoint of any format."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import keras

from bert_tf.checkpoints import native, reading
from bert_tf.checkpoints.checkpoint import LoadReport, listed
from bert_tf.checkpoints.tokenizer import tokenizer_of
from bert_tf.errors import UserError
from bert_tf.progress import say, warn
from bert_tf.training.run_folder import CONFIG_FILE, RunFolder
from export.model_card import Origin
from export.saving import Kind, save, service_of
from export.service import Service

_POOLER = "encoder/pooler/"


def export_run(
    path: str | os.PathLike,
    out: str | os.PathLike,
    kind: Kind = "task",
    pooling: str | None = None,
    precision: str | None = None,
    freeze: bool = False,
    version: int | None = None,
) -> Path:
    """Writes what is at `path` as a SavedModel, and says where.

    How texts become the model's inputs is as the run says that the checkpoint is one of. Of any
    other checkpoint it is assumed, and said.

    Args:
        path: a run folder, or a checkpoint as for `Encoder.from_checkpoint` with its vocabulary.
        out: the folder to write.
        kind, precision, freeze, version: see `export.save`; the precision is float32 by default.
        pooling: of kind "embedding", see `EmbeddingService`.

    Returns:
        The folder that was written.

    Raises:
        UserError: there is nothing at `path`, it cannot be exported so, or `out` cannot be written.
    """
    if pooling is not None and kind != "embedding":
        raise UserError("--pooling is for --kind embedding")
    checkpoint = reading.find(path)
    for note in checkpoint.notes:
        say(f"{path}: {note}")
    model = checkpoint.description.build()
    service = Service if kind == "hub" else service_of(model, kind)
    report = checkpoint.fill(model)
    _check_weights(report, model, path, kind, pooling)
    options: dict[str, Any] = {} if pooling is None else {"pooling": pooling}
    tokenizer = tokenizer_of(checkpoint)
    run = _run_of(checkpoint.folder)
    if run is None:
        origin = Origin(source=str(path))
        if service.assumed is not None:
            say(f"{path} is of no run folder that tells its inputs; assumed: {service.assumed}")
    else:
        origin = Origin.of_run(run)
        options |= service.options_of(run.trained_with)
        options |= service.options_found(origin.metrics or {})
        if options.get("unanswerable") and origin.metrics is None and not options["null_threshold"]:
            warn(
                f"{path} is not finished, so that its best null_threshold is not known and 0.0 is "
                "taken; finish it, or set data.null_threshold"
            )
        # The metrics are of the checkpoint that the run ends with.
        told = {} if run.path.samefile(path) else {"metrics": None}
        origin = dataclasses.replace(origin, source=str(path), **told)
    labels = checkpoint.description.labels if service.has_labels else ()
    settings = {"kind": kind, "precision": precision, "freeze": freeze, "version": version}
    folder = save(model, tokenizer, out, labels, origin=origin, **settings, **options)
    if kind == "hub":
        ending = "" if version is None else str(version)
        parts = " and ".join(str(folder / name / ending) for name in ("preprocessor", "encoder"))
        say(f"{parts}: for hub.load")
    else:
        card = folder / "assets.extra" / "model_card.md"
        say(f"{folder}: ask it with bert-tf predict; {card} tells what it takes and gives")
    return folder


def _run_of(checkpoint: Path) -> RunFolder | None:
    """The run that the folder is a checkpoint of; None where there is none."""
    above = checkpoint.absolute().parent
    is_ours = above.name == native.CHECKPOINTS and (checkpoint / native.DESCRIPTION_FILE).is_file()
    is_of_run = is_ours and (above.parent / CONFIG_FILE).is_file()
    return RunFolder.open(above.parent) if is_of_run else None


def _check_weights(
    report: LoadReport,
    model: keras.Model,
    path: str | os.PathLike,
    kind: Kind,
    pooling: str | None,
) -> None:
    """Says what a checkpoint lacks. Raises UserError where that would be served at random."""
    pooler = [name for name in report.new if name.startswith(_POOLER)]
    others = tuple(name for name in report.new if name not in pooler)
    if others:
        raise UserError(f"{path} lacks the weights {listed(others)}; give a whole checkpoint")
    if pooler and pooling == "pooled":
        raise UserError(f"{path} has no pooler; choose --pooling mean or cls")
    if pooler and kind in ("task", "nsp") and model.uses_pooler:
        raise UserError(
            f"{path} has no pooler, whose output the head of a {type(model).__name__} reads; give "
            "a whole checkpoint"
        )
    if pooler and kind == "hub":
        warn(f"{path} has no pooler; pooled_output is random until it is trained")
    elif not getattr(model, "uses_pooler", True) and (kind == "hub" or pooling == "pooled"):
        instead = "use sequence_output" if kind == "hub" else "choose --pooling mean or cls"
        warn(
            f"{path}: this {type(model).__name__} was trained without the pooler, which is as it "
            f"was at the start, perhaps random; {instead}"
        )
