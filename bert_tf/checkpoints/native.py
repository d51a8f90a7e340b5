"""Our own checkpoint: a folder with `bert_tf.json` and `model.safetensors`.

The JSON says what the model is; the tensors carry our weight names. Both are plain data, so that
opening a checkpoint of unknown origin runs no code.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from bert_tf.checkpoints import tensors
from bert_tf.checkpoints.names import weight_names
from bert_tf.errors import UserError
from bert_tf.files import read_text
from bert_tf.models import EncoderConfig, PreTrainer, SequenceClassifier

DESCRIPTION_FILE = "bert_tf.json"
WEIGHTS_FILE = "model.safetensors"
_FORMAT = 1
_MODELS = {model.__name__: model for model in (PreTrainer, SequenceClassifier)}


@dataclasses.dataclass(frozen=True)
class Description:
    """What `bert_tf.json` holds.

    Attributes:
        model: class name of the model.
        head: the class's own constructor arguments.
        encoder: the encoder's sizes.
        lower_case: whether the tokenizer lower-cases; None where no tokenizer is known.
        vocabulary: SHA-256 of the vocabulary, see `vocabulary_hash`; None likewise.
        labels: names of the classes, in the order of the logits.
    """

    model: str
    head: dict[str, Any]
    encoder: EncoderConfig
    lower_case: bool | None = None
    vocabulary: str | None = None
    labels: tuple[str, ...] = ()

    def build(self, **encoder_options: Any) -> keras.Model:
        """The model with new weights; options (dtype, layout) go to its encoder."""
        from bert_tf.models import Encoder

        return _MODELS[self.model](Encoder(self.encoder, **encoder_options), **self.head)


def vocabulary_hash(vocabulary: Sequence[str]) -> str:
    """SHA-256 of the pieces, one a line."""
    return hashlib.sha256("\n".join(vocabulary).encode()).hexdigest()


def describe(model: keras.Model, tokenizer: Any = None, labels: Sequence[str] = ()) -> Description:
    """The description of a model, with its `bert_tf.Tokenizer` where there is one."""
    return Description(
        model=type(model).__name__,
        head=model.head,
        encoder=model.encoder.config,
        lower_case=None if tokenizer is None else tokenizer.lower_case,
        vocabulary=None if tokenizer is None else vocabulary_hash(tokenizer.vocabulary),
        labels=tuple(labels),
    )


def write(folder: Path, model: keras.Model, description: Description) -> None:
    """Writes the checkpoint into an existing folder; the caller makes it appear atomically."""
    fields = dataclasses.asdict(description) | {"format": _FORMAT}
    (folder / DESCRIPTION_FILE).write_text(json.dumps(fields, indent=2), encoding="utf-8")
    weights = {name: variable.numpy() for name, variable in weight_names(model).items()}
    tensors.save(folder / WEIGHTS_FILE, weights)


def read_description(folder: Path) -> Description:
    """Reads `bert_tf.json`.

    Raises:
        UserError: the file is missing, is not what `write` writes, or is of a later version.
    """
    path = folder / DESCRIPTION_FILE
    try:
        fields = json.loads(read_text(path, "checkpoint description"))
        if fields.pop("format") != _FORMAT:
            raise UserError(f"{path} was written by a later bert_tf; update bert_tf to read it")
        fields["encoder"] = EncoderConfig(**fields["encoder"])
        fields["labels"] = tuple(fields["labels"])
        description = Description(**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"checkpoint description is damaged: {path} ({error})") from None
    if description.model not in _MODELS:
        raise UserError(f"{path} names an unknown model {description.model!r}")
    return description


def read_weights(folder: Path) -> Mapping[str, np.ndarray]:
    """The tensors under our names. Raises UserError when the file is missing or damaged."""
    return tensors.load(folder / WEIGHTS_FILE)
