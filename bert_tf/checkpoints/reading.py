"""Detecting the format of a checkpoint, and opening it."""

import os
import re
from pathlib import Path
from types import ModuleType

from bert_tf.checkpoints import (
    download,
    google,
    huggingface,
    keras_hub,
    model_garden,
    native,
    sentence_transformers,
    tf_files,
    tf_hub,
)
from bert_tf.checkpoints.checkpoint import Checkpoint as Checkpoint
from bert_tf.checkpoints.of_run import RUN_FILE, check, kept, without_checkpoint
from bert_tf.errors import UserError
from bert_tf.io.files import is_there
from bert_tf.io.remote import fetched, is_remote

# The formats that are both read and written.
FORMATS: dict[str, ModuleType] = {
    "bert_tf": native,
    "huggingface": huggingface,
    "sentence_transformers": sentence_transformers,
    "tf1": google,
    "model_garden": model_garden,
    "keras_hub": keras_hub,
}
# The name of a file of a TensorFlow checkpoint: a prefix and an ending.
_TENSORFLOW_FILE = re.compile(r"(.+)\.(?:index|meta|data-\d{5}-of-\d{5})")


def find(path: str | os.PathLike) -> Checkpoint:
    """Detects the format of the checkpoint at a path, a name or an address, and opens it."""
    if download.is_address(path):
        return _found(download.fetch(str(path)))
    try:
        return _found(path)
    except OSError as error:
        raise UserError(f"checkpoint cannot be read: {path} ({error.strerror or error})") from None


def _found(given: str | os.PathLike) -> Checkpoint:
    path = fetched(given, without=native.CHECKPOINTS)
    if path.is_dir():
        return _in_folder(path)
    named = _TENSORFLOW_FILE.fullmatch(path.name)
    prefix = path.with_name(named[1]) if named else path
    if is_there(prefix.with_name(f"{prefix.name}.index"), "checkpoint"):
        return _tensorflow(prefix)
    if is_there(path, "checkpoint"):
        fetched(path.parent)
        if path.suffix == ".keras":
            raise UserError(f"{path} is a .keras file; open it with bert_tf.load")
        return _in_folder(path.parent)
    if is_remote(given):
        raise UserError(f"checkpoint not found: {path}; check the address")
    # Unlike `path`, `given` may begin with "./"; no name on the Hub does.
    if download.is_name(str(given)):
        return _in_folder(download.fetch(str(given)))
    raise UserError(
        f"checkpoint not found: {path}; give a folder, or a name on the Hugging Face Hub such as "
        "google-bert/bert-base-uncased"
    )


def _in_folder(folder: Path) -> Checkpoint:
    if (folder / native.CHECKPOINTS).is_dir():
        return native.open_checkpoint(kept(folder))
    if is_there(folder / native.DESCRIPTION_FILE):
        check(folder)
        return native.open_checkpoint(folder)
    if is_there(folder / tf_hub.SAVED_MODEL_FILE):
        return tf_hub.open_checkpoint(folder)
    if sentence_transformers.is_one(folder):
        return sentence_transformers.open_checkpoint(folder)
    if keras_hub.is_one(folder):
        return keras_hub.open_checkpoint(folder)
    if is_there(folder / huggingface.CONFIG_FILE):
        return huggingface.open_checkpoint(folder)
    prefix = tf_files.find_prefix(folder)
    if prefix is not None:
        return _tensorflow(prefix)
    if (folder / RUN_FILE).is_file():
        raise without_checkpoint(folder)
    raise UserError(
        f"no checkpoint in {folder}: expected a run folder, {native.DESCRIPTION_FILE} (bert_tf), "
        f"{huggingface.CONFIG_FILE} (Hugging Face or KerasHub), {google.PREFIX}.index "
        f"(google-research or Model Garden) or {tf_hub.SAVED_MODEL_FILE} (TF Hub)"
    )


def _tensorflow(prefix: Path) -> Checkpoint:
    """A checkpoint of Model Garden, which has a graph of objects, or of google-research."""
    found = tf_files.open_prefix(prefix)
    form = model_garden if tf_files.OBJECT_GRAPH in found.shapes else google
    return form.open_checkpoint(prefix, found)
