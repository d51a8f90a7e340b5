"""What a checkpoint is, besides its tensors."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from bert_tf.checkpoints.plain_json import EXTRA_KEY
from bert_tf.checkpoints.sizes import encoder_config
from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError

ENCODER = "Encoder"


@dataclasses.dataclass(frozen=True)
class Description:
    """What our own format writes in full, and others as far as they can.

    Attributes:
        model: class name of the model; "Encoder" where there is no head.
        head: the class's own constructor arguments.
        encoder: the encoder's sizes.
        lower_case: whether the tokenizer lower-cases; None where that is not known.
        vocabulary: SHA-256 of the vocabulary, see `vocabulary_hash`; None likewise.
        labels: names of the classes, in the order of the logits.
        settings: how a task model turns strings into inputs and outputs into answers, such as
            `max_length`; {} where that is not known.
    """

    model: str
    head: dict[str, Any]
    encoder: EncoderConfig
    lower_case: bool | None = None
    vocabulary: str | None = None
    labels: tuple[str, ...] = ()
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data, for JSON."""
        fields = dataclasses.asdict(self)
        # The same bytes on disk, whichever format a checkpoint has come through.
        ordered = {name: dict(sorted(fields[name].items())) for name in ("head", "settings")}
        return fields | ordered | {"labels": list(self.labels)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], path: Path) -> "Description":
        """What `to_dict` made; `path` names the file in messages.

        Raises:
            UserError: a field is missing, unknown or of the wrong kind.
        """
        fields = {"settings": {}} | dict(fields)
        wrong = _wrong_field(fields)
        if wrong:
            raise UserError(
                f"checkpoint description is damaged: {path} ({wrong}); copy the checkpoint again"
            )
        count = len(fields["labels"])
        classes = fields["head"].get("num_classes", count)
        if count not in (0, classes):
            raise UserError(
                f"{path}: the number of labels is {count}, but num_classes is {classes!r}; copy "
                "the checkpoint again"
            )
        encoder = encoder_config(fields["encoder"], path)
        return cls(**fields | {"encoder": encoder, "labels": tuple(fields["labels"])})

    def differing(self, said: "Description") -> dict[str, Any]:
        """The fields that differ in `said`, the description read back from another format.

        The result is {} if nothing differs.

        The vocabulary's hash is left out: other formats keep the vocabulary itself alongside.
        """
        ours, theirs = self.to_dict(), said.to_dict()
        fields = {
            name: ours[name]
            for name in ("model", "head", "lower_case", "labels", "settings")
            if ours[name] != theirs[name]
        }
        encoder = {
            name: value
            for name, value in ours["encoder"].items()
            if theirs["encoder"][name] != value
        }
        return fields | ({"encoder": encoder} if encoder else {})

    def supplemented(self, config: Mapping[str, Any], path: Path) -> "Description":
        """This one with the fields put back that `differing` found, if the configuration has them.

        Raises:
            UserError: what `config`, the content of `path`, has under `EXTRA_KEY` is damaged.
        """
        if EXTRA_KEY not in config:
            return self
        differing = config[EXTRA_KEY]
        if not isinstance(differing, dict) or not isinstance(differing.get("encoder", {}), dict):
            raise UserError(
                f"{path}: the key bert_tf is damaged; remove it, or copy the file again"
            )
        fields = self.to_dict()
        encoder = fields["encoder"] | differing.get("encoder", {})
        return Description.from_dict(fields | differing | {"encoder": encoder}, path)


def describe(model: keras.Model, tokenizer: Any = None) -> Description:
    """The description of a model, with its `bert_tf.Tokenizer` where there is one.

    Raises:
        UserError: `model` is not one of bert_tf, or does not know its classes yet.
    """
    has_head = hasattr(model, "encoder")
    encoder = getattr(model.encoder if has_head else model, "config", None)
    if not isinstance(encoder, EncoderConfig):
        raise UserError(
            f"a {type(model).__name__} cannot be saved as a checkpoint; give a model of bert_tf"
        )
    head = dict(model.head) if has_head else {}
    if head.get("num_classes", 0) is None:
        raise UserError(f"this {type(model).__name__} has no labels yet; train it first with fit")
    return Description(
        model=type(model).__name__ if has_head else ENCODER,
        head=head,
        encoder=encoder,
        lower_case=None if tokenizer is None else tokenizer.lower_case,
        vocabulary=None if tokenizer is None else vocabulary_hash(tokenizer.vocabulary),
        labels=tuple(getattr(model, "labels", ())),
        settings=dict(getattr(model, "settings", {})),
    )


def classifier_or_regressor(
    outputs: int, dropout: float | None = None
) -> tuple[str, dict[str, Any]]:
    """The model of texts that has so many outputs, and its head: a single output is a number."""
    if outputs == 1:
        return "TextRegressor", {"dropout": dropout}
    return "TextClassifier", {"num_classes": outputs, "dropout": dropout}


def vocabulary_hash(vocabulary: Sequence[str]) -> str:
    """SHA-256 of the pieces, one a line."""
    return hashlib.sha256("\n".join(vocabulary).encode()).hexdigest()


def _wrong_field(fields: Mapping[str, Any]) -> str | None:
    """What is wrong with the kinds of the fields; None if nothing is."""
    kinds = {
        "model": str,
        "head": dict,
        "encoder": dict,
        "lower_case": bool | None,
        "vocabulary": str | None,
        "labels": list,
        "settings": dict,
    }
    for name in kinds.keys() ^ fields.keys():
        return f"{name} is missing" if name in kinds else f"unknown key {name!r}"
    for name, kind in kinds.items():
        if not isinstance(fields[name], kind):
            return f"{name} has the wrong type"
    if not all(isinstance(label, str) for label in fields["labels"]):
        return "a label is not a string"
    return None
