"""Our own checkpoint: a folder with `bert_tf.json` and `model.safetensors`, and a `vocab.txt`.

The JSON describes the model, and the tensors have our names of weights. Both are plain data, so
opening a checkpoint of unknown origin runs no code.
"""

from pathlib import Path
from typing import Any

import keras

from bert_tf.checkpoints import plain_json, tensors
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.correspondence import Table
from bert_tf.checkpoints.description import Content, Description
from bert_tf.checkpoints.names import weight_names
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import read_beside

DESCRIPTION_FILE = "bert_tf.json"
WEIGHTS_FILE = "model.safetensors"
# The folder of the checkpoints in a run folder.
CHECKPOINTS = "checkpoints"
# All weights have our own names.
TABLE = Table("bert_tf", prefix="")

_FORMAT = 2


def write(folder: Path, model: keras.Model, description: Description) -> None:
    """Writes the checkpoint into an existing folder; the caller makes it appear atomically."""
    weights = {name: variable.numpy() for name, variable in weight_names(model).items()}
    write_content(folder, Content(weights, description))


def write_content(folder: Path, content: Content) -> None:
    """As `write`, for weights without a model."""
    plain_json.write(folder / DESCRIPTION_FILE, description_fields(content.description))
    tensors.save(folder / WEIGHTS_FILE, content.weights)
    content.write_vocabulary(folder)


def description_fields(description: Description) -> dict[str, Any]:
    """The content of `bert_tf.json`."""
    return description.to_dict() | {"format": _FORMAT}


def read_description(folder: Path) -> Description:
    """Reads `bert_tf.json`."""
    path = folder / DESCRIPTION_FILE
    fields = plain_json.read_object(path, "checkpoint description")
    written = fields.pop("format", None)
    if type(written) is not int or written < 1:
        raise UserError(
            f"checkpoint description is damaged: {path} (format is not a positive number); copy "
            "the checkpoint again"
        )
    if written > _FORMAT:
        raise UserError(
            f"{path} was written by a later version of bert_tf; update bert_tf to read it"
        )
    return Description.from_dict(fields, path)


def open_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`; the vocabulary of a run's checkpoint is in the run folder."""
    description = read_description(folder)
    above = folder.absolute().parent
    places = [folder, above.parent] if above.name == CHECKPOINTS else [folder]
    found = tensors.open_file(folder / WEIGHTS_FILE)

    def vocabulary() -> tuple[str, ...] | None:
        return next(filter(None, map(read_beside, places)), None)

    return Checkpoint(folder, description, found, TABLE, vocabulary).check()
