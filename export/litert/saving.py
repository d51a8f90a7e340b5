"""LiteRT files of bert_tf: the network, and what is needed to run it on strings."""

import os
from pathlib import Path
from typing import Any

import bert_tf
from bert_tf.asking.record import Record
from bert_tf.compat import lite_interpreter, unresolved_operation
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.export.litert import mediapipe, metadata
from bert_tf.export.litert.conversion import INPUTS, convert
from bert_tf.export.litert.form import DeviceForm, LiteForm, StringsForm
from bert_tf.export.litert.metadata import LABELS_FILE, VOCABULARY_FILE
from bert_tf.export.service import record_of
from bert_tf.io.atomic import atomic_path
from bert_tf.io.remote import exists, local_path
from bert_tf.io.vocabulary import file_text

SUFFIX = ".tflite"
# Descriptions of inputs and outputs, for people.
_DESCRIPTIONS = {
    "ids": "ids of the word pieces, padded with the id of [PAD]",
    "mask": "1 for word pieces, 0 for padding",
    "segment_ids": "0 for the first text, 1 for the second",
    "probabilities": "probabilities of the labels",
    "scores": "what the head computes, of which the probabilities are made",
}


def read(path: str | os.PathLike) -> tuple[bytes, Record, tuple[str, ...]]:
    """A file's content for an interpreter, its record, and the pieces of its tokenizer."""
    content, settings, files = metadata.read(path)
    vocabulary = tuple(files.get(VOCABULARY_FILE, "").removesuffix("\n").split("\n"))
    return content, Record.from_dict(settings, path), vocabulary


def save_lite(model: Any, out: str | os.PathLike, form: LiteForm) -> Path:
    """Writes a task model as a LiteRT file; see `TaskModel.export`."""
    path = new_file(out, SUFFIX, "a LiteRT file")
    form, of_strings = form.checked(model), form.inputs == "strings"
    network = convert(model, form)
    try:
        lite_interpreter(network, 1, with_text=of_strings)
    except (ValueError, RuntimeError) as error:  # no kernel computes one of its operations
        missing = unresolved_operation(error)
        if missing is None:
            raise
        raise UserError(
            f"LiteRT has no operation {missing}, which this {type(model).__name__} uses to read "
            "strings; export a file that takes ids"
        ) from None
    answers = model.strings_form() if of_strings else model.device_form()
    lengths = form.lengths or (model.max_length,)
    record = record_of(model, lengths, form.inputs, form.precision)
    # A text that does not fit into the longest row is read as the model reads longer texts.
    longest, settings = lengths[-1], record.model["settings"]
    if model.long_text == "windows":
        settings["max_windows"] = longest // model.max_length
    else:
        settings["max_length"] = longest
    with atomic_path(path, is_file=True, is_new=True) as new:
        new.write_bytes(_described(model, network, answers, record))
    return path


def new_file(out: str | os.PathLike, suffix: str, kind: str) -> Path:
    """The path of a file to write. Raises UserError if it has another suffix or exists already."""
    path = local_path(out)
    if path.suffix != suffix:
        raise UserError(f"the name of {kind} must end in {suffix}, unlike {path}")
    if exists(path):
        raise UserError(f"{path} exists already; remove it or choose another file")
    return path


def _described(model: Any, network: bytes, form: DeviceForm | StringsForm, record: Record) -> bytes:
    """The content of the file of a task model."""
    files = {VOCABULARY_FILE: file_text(model.tokenizer.vocabulary)}
    if model.labels:
        files[LABELS_FILE] = file_text(model.labels)
    names = form.inputs if isinstance(form, StringsForm) else INPUTS
    about = f"exported by bert_tf {bert_tf.__version__}"
    if isinstance(form, StringsForm):
        about += "; its tokenizer requires the operations of TensorFlow Text"
    if model.long_text == "windows":
        windows, length = record.model["settings"]["max_windows"], model.max_length
        about += (
            f"; a row is up to {windows} windows of {length} tokens, end to end; what lies beyond "
            "them is not read"
        )
    return metadata.with_metadata(
        network,
        record.to_dict(),
        files,
        (record.class_name, about),
        {name: _DESCRIPTIONS.get(name, "") for name in names},
        {name: _DESCRIPTIONS.get(name, "") for name in form.outputs},
        for_mediapipe=_is_for_mediapipe(model, network, form),
    )


def _is_for_mediapipe(model: Any, network: bytes, form: DeviceForm | StringsForm) -> bool:
    """Whether MediaPipe can run a file; warns of obstacles and differences for suitable models."""
    # MediaPipe cuts the ends of longer texts off.
    single = model.input_names == ("text",) and isinstance(form, DeviceForm)
    single = single and model.long_text == "truncate"
    kinds = {"probabilities", "scores"}, {"embedding"}
    if not single or form.outputs.keys() not in kinds:
        return False
    obstacle = mediapipe.obstacle(network, model.tokenizer.settings)
    if obstacle is None:
        logger.warning(mediapipe.DIFFERENCES)
    else:
        logger.warning(f"MediaPipe cannot run the file: {obstacle}")
    return obstacle is None
