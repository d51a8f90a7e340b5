"""Batches of rows of similar length, in an order in which reading can start anywhere.

Computing on padding is wasteful, so rows of similar length share a batch, unless the order must be
fully random. Batch k is a function of (lengths, batch size, seed, k). So a run that resumes starts
at its step at once.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import tensorflow as tf

from bert_tf.data.mapped import joined
from bert_tf.data.until_exit import counter, map_until_exit
from bert_tf.errors import UserError

# Rows of this many batches are drawn together and sorted by length, and then cut.
_POOL_BATCHES = 50
_LENGTHS = "lengths"

# Yields batches from a number on: padded inputs, and the other fields of `TrainingRows` by name.
Batches = Callable[[int], Iterator[tuple[Mapping[str, tf.Tensor], dict[str, Any]]]]


@dataclasses.dataclass(frozen=True)
class EncodedRows:
    """Packed inputs of many texts, without padding."""

    word_ids: np.ndarray  # int32 [tokens], the tokens of all rows, one row after the other
    type_ids: np.ndarray  # int32 [tokens]
    starts: np.ndarray  # int64 [rows + 1], where each row begins
    padded_to: int | None = None  # the length to which `take` pads; None: the longest row's
    # Further values of the tokens, [tokens]; padding has -1 in whole numbers and 0 in others.
    others: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray]) -> "EncodedRows":
        """The rows from the joined arrays of `flat`; arrays with other names become `others`."""
        ids, types, lengths = map(arrays.pop, ("input_word_ids", "input_type_ids", _LENGTHS))
        return cls(ids, types, np.concatenate([[0], np.cumsum(lengths)]), others=arrays)

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]: tokens of each row."""
        return np.diff(self.starts)

    def take(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The encoder's inputs for `rows`, int32, and `others`, all [batch, seq_len], padded."""
        starts = self.starts[rows]
        lengths = self.starts[rows + 1] - starts  # `self.lengths` would compute all lengths
        place = np.arange(self.padded_to or lengths.max())[None, :]
        mask = place < lengths[:, None]
        source = (starts[:, None] + place)[mask]
        inputs = {"input_mask": mask.astype(np.int32)}
        for name, values in (("input_word_ids", self.word_ids), ("input_type_ids", self.type_ids)):
            inputs[name] = np.zeros(mask.shape, np.int32)
            inputs[name][mask] = values[source]
        for name, values in self.others.items():
            padding = -1 if values.dtype.kind == "i" else 0
            inputs[name] = np.full(mask.shape, padding, values.dtype)
            inputs[name][mask] = values[source]
        return inputs


def flat(batch: Mapping[str, tf.Tensor]) -> dict[str, np.ndarray]:
    """Packed inputs [batch, seq_len] as flat arrays [tokens] without padding, and rows' lengths."""
    mask = batch["input_mask"].numpy().astype(bool)
    found = {name: batch[name].numpy()[mask] for name in sorted(batch.keys() - {"input_mask"})}
    return found | {_LENGTHS: mask.sum(axis=1)}


@dataclasses.dataclass(frozen=True)
class TrainingRows:
    """Packed rows to train on. For rows of a fixed length, a copy is made whose `encoded` is padded
    to that length; a subclass must read its inputs from `encoded`.
    """

    encoded: EncodedRows
    targets: Any = None  # [rows, ...], or a dict of such arrays; None if there are none
    weights: np.ndarray | None = None  # float32 [rows]; None if all rows count equally

    @classmethod
    def gather(cls, batches: Batches, folder: Path | None = None) -> Self:
        """Joins batches of padded inputs and of the other fields by name, as `mapped.joined`."""

        def pieces(first: int) -> Iterator[dict[str, np.ndarray]]:
            for features, others in batches(first):
                arrays = flat(features)
                for name, each in others.items():
                    keys = each if isinstance(each, dict) else {"": each}
                    arrays |= {f".{name}.{key}": np.asarray(keys[key]) for key in keys}
                yield arrays

        arrays = joined(pieces, folder)
        found: dict[str, Any] = {}
        for path in [name for name in arrays if name.startswith(".")]:
            _, name, key = path.split(".")
            value = arrays.pop(path)
            found[name] = found.get(name, {}) | {key: value} if key else value
        return cls(EncodedRows.of_arrays(arrays), **found)

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]: tokens of each row."""
        return self.encoded.lengths

    def take(self, rows: np.ndarray) -> tuple:
        """The inputs of some rows, and their targets and weights if any, each [batch, ...]."""
        others = [each for each in (self.targets, self.weights) if each is not None]
        return self.inputs(rows), *tf.nest.map_structure(lambda each: each[rows], others)

    def inputs(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The encoder's inputs, [batch, seq_len]."""
        return self.encoded.take(rows)


@dataclasses.dataclass(frozen=True)
class GroupedRows(TrainingRows):
    """Rows that are groups of packed texts; `encoded` has the texts."""

    # int [rows, width], the texts of each row by their numbers; -1 is padding.
    groups: np.ndarray = dataclasses.field(kw_only=True)
    of_texts: bool = False  # whether each text has a target, [rows, width]

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]: tokens of each row's longest text."""
        return np.where(self.groups < 0, 0, self.encoded.lengths[self.groups]).max(axis=1)

    def take(self, rows: np.ndarray) -> tuple:
        inputs, targets, *weights = super().take(rows)
        width = inputs["input_mask"].shape[1]
        return inputs, targets[:, :width] if self.of_texts else targets, *weights

    def inputs(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """[batch, width, seq_len], 0 for missing texts; with `padded_to` always the same width."""
        groups = self.groups[rows]
        if not self.encoded.padded_to:
            groups = groups[:, : (groups >= 0).sum(axis=1).max()]
        is_there, found = groups >= 0, {}
        for name, values in self.encoded.take(groups[is_there]).items():
            found[name] = np.zeros((*groups.shape, values.shape[1]), values.dtype)
            found[name][is_there] = values
        return found


def training_batches(
    examples: TrainingRows,
    batch_size: int,
    seed: int,
    start: int,
    part: int = 0,
    parts: int = 1,
    length: int | None = None,
    group_by_length: bool = True,
    shuffle: bool = True,
) -> tf.data.Dataset:
    """Endless batches of (inputs, targets), or (inputs, targets, weights), from step `start` on.

    It yields the rows `part::parts` of every batch, for one device of several. Each row is padded
    to `length` tokens, or to the longest of all rows if that is longer; None pads to the longest
    row of the batch. Without `shuffle` the rows come in their order, again and again.
    """
    count = len(examples.lengths)
    if count < batch_size:
        raise UserError(
            f"batch size {batch_size} is larger than the number of rows, {count}; lower the batch "
            "size"
        )
    if length is not None:
        padded_to = max(length, int(examples.encoded.lengths.max()))
        encoded = dataclasses.replace(examples.encoded, padded_to=padded_to)
        examples = dataclasses.replace(examples, encoded=encoded)

    def in_order(step: int) -> np.ndarray:
        return (step * batch_size + np.arange(batch_size)) % count

    shuffled = ShuffledBatches(examples.lengths, batch_size, seed, group_by_length)
    rows = shuffled.rows if shuffle else in_order
    mine = batch_size // parts
    form = examples.take(np.zeros(mine, np.int64))
    arrays = tf.nest.flatten(form)
    dtypes = [tf.as_dtype(each.dtype) for each in arrays]

    def batch(step: np.ndarray) -> list[np.ndarray]:
        return tf.nest.flatten(examples.take(rows(int(step))[part::parts]))

    def shaped(*arrays_now: tf.Tensor) -> tuple:
        known = [
            tf.ensure_shape(each, [mine, *(like.shape[1:] if length else [None] * (like.ndim - 1))])
            for each, like in zip(arrays_now, arrays, strict=True)
        ]
        return tf.nest.pack_sequence_as(form, known)

    steps = counter(start)
    return map_until_exit(steps, batch, dtypes).map(shaped).prefetch(tf.data.AUTOTUNE)


class ShuffledBatches:
    """Every epoch is a new permutation of the rows, without those at its end that fill no batch."""

    def __init__(
        self, lengths: np.ndarray, batch_size: int, seed: int, group_by_length: bool = True
    ):
        self._lengths, self._group_by_length = lengths, group_by_length
        self._batch_size, self._seed = batch_size, seed
        self.per_epoch = len(lengths) // batch_size
        self._epoch = functools.lru_cache(maxsize=2)(self._draw_epoch)

    def rows(self, step: int) -> np.ndarray:
        """int64 [batch]: the rows of batch `step`."""
        epoch, place = divmod(step, self.per_epoch)
        return self._epoch(epoch)[place]

    def _draw_epoch(self, epoch: int) -> np.ndarray:
        random = np.random.default_rng([self._seed, epoch])
        order = random.permutation(len(self._lengths))[: self.per_epoch * self._batch_size]
        if not self._group_by_length:
            return order.reshape(-1, self._batch_size)
        pool = _POOL_BATCHES * self._batch_size
        pools = [order[start : start + pool] for start in range(0, len(order), pool)]
        by_length = [p[np.argsort(self._lengths[p], kind="stable")] for p in pools]
        return random.permutation(np.concatenate(by_length).reshape(-1, self._batch_size))
