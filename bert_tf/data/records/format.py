"""Pre-training examples as `tf.train.Example`.

They are those of google-research/bert (create_pretraining_data.py), or of Model Garden, which calls
two features by other names. Each has a fixed number of tokens and of places for masked tokens.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from bert_tf.data.records.files import RecordFile
from bert_tf.errors import UserError

# The format in the `manifest.json` that `bert-tf pretrain-data` writes.
RECORDS = "bert_tf examples 1"

# Our names -> the names in each naming, if they differ.
NAMINGS = {
    "google": {"input_word_ids": "input_ids", "input_type_ids": "segment_ids"},
    "model_garden": {},
}
TOKENS = ("input_word_ids", "input_mask", "input_type_ids")
PREDICTIONS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
LABELS = "next_sentence_labels"


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """The format of the examples in a file."""

    naming: str  # a key of `NAMINGS`
    max_length: int
    max_predictions: int
    has_labels: bool  # whether there are `next_sentence_labels`

    @classmethod
    def of(cls, file: RecordFile) -> "RecordFormat":
        """The format of the file's first record."""
        where = f"{file.path}, record 1"
        (record,) = file.read(0, 1)
        try:
            features = tf.train.Example.FromString(record).features.feature
        except (ValueError, RuntimeError, TypeError) as error:
            raise UserError(f"{where} is not a tf.train.Example ({error})") from None
        except DecodeError:
            raise UserError(f"{where} is not a tf.train.Example") from None
        naming = "google" if "input_ids" in features else "model_garden"
        names = {name: NAMINGS[naming].get(name, name) for name in (*TOKENS, *PREDICTIONS)}
        missing = [name for name in names.values() if name not in features]
        if missing:
            raise UserError(
                f"{where} is not a pre-training example: it has no {', '.join(missing)}, only "
                f"{', '.join(sorted(features)) or 'nothing'}"
            )
        tokens, predictions = names["input_word_ids"], names["masked_lm_positions"]
        return cls(
            naming,
            len(features[tokens].int64_list.value),
            len(features[predictions].int64_list.value),
            LABELS in features,
        )

    def sizes(self) -> dict[str, list[int]]:
        """The shape of each feature, under our names."""
        sizes = dict.fromkeys(TOKENS, [self.max_length])
        sizes |= dict.fromkeys(PREDICTIONS, [self.max_predictions])
        return sizes | ({LABELS: []} if self.has_labels else {})

    def parse(self, records: Sequence[bytes]) -> dict[str, np.ndarray]:
        """The features of examples, under our names; a ValueError if one is not of this format.
        Integers beyond 32 bits become the nearest 32-bit integer, which is never a valid id.
        """
        names = NAMINGS[self.naming]
        sizes = self.sizes()
        spec = {
            names.get(name, name): tf.io.FixedLenFeature(
                size or [1], tf.float32 if name == "masked_lm_weights" else tf.int64
            )
            for name, size in sizes.items()
        }
        try:
            with tf.device("/CPU:0"):
                parsed = tf.io.parse_example(tf.constant(records, tf.string), spec)
        # A UnicodeDecodeError occurs if TensorFlow quotes the record's bytes in its message.
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError) as error:
            raise ValueError("not examples of this format") from error
        found, limits = {}, np.iinfo(np.int32)
        for name, size in sizes.items():
            values = parsed[names.get(name, name)].numpy()
            if values.dtype != np.float32:
                values = np.clip(values, limits.min, limits.max).astype(np.int32)
            found[name] = values.reshape(-1, *size)
        return found

    def encode(self, example: Mapping[str, np.ndarray]) -> bytes:
        """One example, each array without a batch axis, for `parse` to read."""
        names = NAMINGS[self.naming]
        features = {}
        for name, values in example.items():
            if name == "masked_lm_weights":
                kind = {"float_list": tf.train.FloatList(value=values.tolist())}
            else:
                kind = {"int64_list": tf.train.Int64List(value=np.atleast_1d(values).tolist())}
            features[names.get(name, name)] = tf.train.Feature(**kind)
        made = tf.train.Example(features=tf.train.Features(feature=features))
        return made.SerializeToString(deterministic=True)
