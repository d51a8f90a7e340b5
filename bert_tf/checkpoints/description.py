"""What a checkpoint is: everything but its tensors and its vocabulary."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import keras
import numpy as np

from bert_tf.checkpoints.heads import ENCODER
from bert_tf.checkpoints.plain_json import checked
from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import TokenizerSettings, is_lower_case, write_beside

# The key of another format's configuration that holds what this format cannot express.
EXTRA_KEY = "bert_tf"


@dataclasses.dataclass(frozen=True)
class Description:
    """The facts that our own format stores in full, and other formats as far as they can."""

    model: str  # the class
    head: dict[str, Any]  # its constructor arguments
    encoder: EncoderConfig
    lower_case: bool | None = None  # None if unknown
    vocabulary: str | None = None  # its `vocabulary_hash`; None if unknown
    labels: tuple[str, ...] = ()  # in the order of the logits
    # How a task model turns strings into inputs and outputs into answers.
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    tokenizer: dict[str, Any] = dataclasses.field(default_factory=dict)  # `besides_casing`

    def tokenizer_settings(self, vocabulary: Sequence[str]) -> TokenizerSettings:
        """How the tokenizer reads texts; where the casing is unknown, the vocabulary decides it."""
        lower_case = is_lower_case(vocabulary) if self.lower_case is None else self.lower_case
        return TokenizerSettings(lower_case, **self.tokenizer)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data, for JSON."""
        fields = dataclasses.asdict(self)
        # Sorted, so that a checkpoint has the same bytes after a detour through other formats.
        ordered = {name: dict(sorted(fields[name].items())) for name in ("head", "settings")}
        fields |= ordered | {"labels": list(self.labels)}
        if not self.tokenizer:
            del fields["tokenizer"]
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], path: Path) -> "Description":
        """The description in `fields`, which `to_dict` made; `path` names the file in messages."""
        fields = {"settings": {}, "tokenizer": {}} | dict(fields)
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
        tokenizer = TokenizerSettings.from_parts(True, fields["tokenizer"], str(path))
        own = {
            "encoder": encoder_config(fields["encoder"], path),
            "labels": tuple(fields["labels"]),
            "tokenizer": tokenizer.besides_casing,
        }
        return cls(**fields | own)

    def differing(self, other: "Description") -> dict[str, Any]:
        """The fields that differ in `other`, the description read back from another format."""
        # Without the vocabulary's hash, since other formats have the vocabulary itself.
        ours, theirs = ({"tokenizer": {}} | each.to_dict() for each in (self, other))
        names = ["model", "head", "lower_case", "labels", "settings"]
        if self.vocabulary is not None:
            names.append("tokenizer")
        fields = {name: ours[name] for name in names if ours[name] != theirs[name]}
        here, there = ours["encoder"], theirs["encoder"]
        encoder = {name: here[name] for name in here if here[name] != there[name]}
        return fields | ({"encoder": encoder} if encoder else {})

    def supplemented(self, config: Mapping[str, Any], path: Path) -> "Description":
        """This description with the fields under `EXTRA_KEY` in `config`, which is from `path`."""
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


class Content(NamedTuple):
    """The content of a new checkpoint in any format: arrays by our names, and a description."""

    weights: Mapping[str, np.ndarray]
    description: Description
    vocabulary: tuple[str, ...] | None = None

    def write_vocabulary(self, folder: Path) -> None:
        """Writes `vocab.txt`, if there is a vocabulary."""
        if self.vocabulary is not None:
            write_beside(folder, self.vocabulary)


def describe(model: keras.Model, tokenizer: Any = None) -> Description:
    """The description of a model of bert_tf and its `bert_tf.Tokenizer`, if there is one."""
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
        tokenizer={} if tokenizer is None else tokenizer.settings.besides_casing,
    )


def encoder_config(fields: Mapping[str, Any], path: Path) -> EncoderConfig:
    """The encoder's sizes in `fields`, checked; a missing size gets our default."""
    values = {}
    for field in dataclasses.fields(EncoderConfig):
        if field.name not in fields:
            continue
        value = fields[field.name]
        if field.type is float and type(value) is int:
            value = float(value)
        values[field.name] = checked(path, field.name, value, cast(type, field.type))
    try:
        return EncoderConfig(**values)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def vocabulary_hash(vocabulary: Sequence[str]) -> str:
    """SHA-256 of the pieces, one a line."""
    return hashlib.sha256("\n".join(vocabulary).encode()).hexdigest()


def _wrong_field(fields: Mapping[str, Any]) -> str | None:
    """What is wrong with the types of the fields; None if nothing is."""
    kinds = {
        "model": str,
        "head": dict,
        "encoder": dict,
        "lower_case": bool | None,
        "vocabulary": str | None,
        "labels": list,
        "settings": dict,
        "tokenizer": dict,
    }
    for name in fields.keys() - kinds.keys():
        return f"unknown key {name!r}, perhaps of a later bert_tf"
    for name, kind in kinds.items():
        if name not in fields:
            return f"{name} is missing"
        if not isinstance(fields[name], kind):
            return f"{name} has the wrong type"
    if not all(isinstance(label, str) for label in fields["labels"]):
        return "a label is not a string"
    return None
