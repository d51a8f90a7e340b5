"""A LiteRT file of bert_tf: the network, and what is needed to run it on strings."""

import os
from typing import Any

import bert_tf
from bert_tf.asking.record import Record
from bert_tf.console import logger
from bert_tf.export.litert import mediapipe, metadata
from bert_tf.export.litert.form import DeviceForm, StringsForm
from bert_tf.export.litert.metadata import LABELS_FILE, VOCABULARY_FILE
from bert_tf.io.vocabulary import file_text

SUFFIX = ".tflite"
# What people read of an input or an output.
_DESCRIPTIONS = {
    "ids": "ids of the word pieces, padded with the id of [PAD]",
    "mask": "1 for word pieces, 0 for padding",
    "segment_ids": "0 for the first text, 1 for the second",
    "probabilities": "probabilities of the labels",
    "scores": "what the head computes, of which the probabilities are made",
}


def read(path: str | os.PathLike) -> tuple[bytes, Record, tuple[str, ...]]:
    """A whole file, which an interpreter takes, its record, and the pieces of its tokenizer."""
    content, settings, files = metadata.read(path)
    vocabulary = tuple(files.get(VOCABULARY_FILE, "").removesuffix("\n").split("\n"))
    return content, Record.from_dict(settings, path), vocabulary


def described(model: Any, network: bytes, form: DeviceForm | StringsForm, record: Record) -> bytes:
    """The content of the file of a task model."""
    files = {VOCABULARY_FILE: file_text(model.tokenizer.vocabulary)}
    if model.labels:
        files[LABELS_FILE] = file_text(model.labels)
    names = form.inputs if isinstance(form, StringsForm) else ("ids", "mask", "segment_ids")
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
    """Whether MediaPipe's classifier or embedder can run a file; if it might, says what it lacks.

    Other files have no tokenizer for it, so that it refuses them.
    """
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
