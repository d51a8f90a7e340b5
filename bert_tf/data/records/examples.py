"""The examples of TFRecord files as an endless sequence, in which one can start anywhere.

The records of a file are read in blocks, and the blocks of a pool are shuffled together. `Order`
finds example i by arithmetic; the pools follow from (seed, epoch), the shuffling from (seed, pool).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from bert_tf.data.corpora.corpus import first_of
from bert_tf.data.corpora.order import Part, PooledExamples
from bert_tf.data.records.files import RecordFile
from bert_tf.data.records.format import LABELS, RecordFormat
from bert_tf.errors import UserError

# Records that are read at once, and dealt as one unit of the order.
_BLOCK = 256


class RecordExamples(PooledExamples):
    """The examples of some files, numbered from 0 without end.

    >>> import tensorflow as tf
    >>> from bert_tf.data.records.format import PREDICTIONS
    >>> record = RecordFormat("google", max_length=4, max_predictions=1, has_labels=False)
    >>> ones = np.ones(4, int)
    >>> with tf.io.TFRecordWriter("train.tfrecord") as file:
    ...     for word in (5, 6):
    ...         example = {"input_word_ids": np.array([2, word, word, 3])}
    ...         example |= {"input_mask": ones, "input_type_ids": 0 * ones}
    ...         example |= dict.fromkeys(PREDICTIONS, ones[:1])
    ...         file.write(record.encode(example))
    >>> examples = RecordExamples([Path("train.tfrecord")], vocab_size=10, seed=0)
    >>> examples.per_epoch
    2
    >>> sorted(examples.rows(0, 2, 1)[0].tolist())
    [[2, 5, 5, 3], [2, 6, 6, 3]]

    Args:
        files: TFRecord files of one format.
        vocab_size: one more than the largest id that may occur.
        seed: decides the order.

    Attributes:
        name: the name of the files in messages.
        format: the format of the examples.
        per_epoch: the number of examples.

    Raises:
        UserError: files that cannot be read or hold no such examples, from here and from `rows`.
    """

    _KEY = 3  # token shards have 2

    def __init__(self, files: list[Path], vocab_size: int, seed: int):
        self._files = [file for file in map(RecordFile, files) if len(file)]
        self.name = first_of(files)
        if not self._files:
            raise UserError(f"{self.name} contains no examples; check data.path")
        self.format = RecordFormat.of(self._files[0])
        self._vocab_size = vocab_size
        blocks = [
            (number, first, min(first + _BLOCK, len(file)))
            for number, file in enumerate(self._files)
            for first in range(0, len(file), _BLOCK)
        ]
        self._blocks = np.array(blocks)
        super().__init__(self._blocks[:, 2] - self._blocks[:, 1], seed)

    def check(self, max_length: int, next_sentence: bool) -> None:
        """Raises a `UserError` if the examples are of another length, or lack labels."""
        if self.format.max_length != max_length:
            raise UserError(
                f"the examples in {self.name} have {self.format.max_length} tokens, but "
                f"train.max_length is {max_length}; set it to {self.format.max_length}"
            )
        if next_sentence and not self.format.has_labels:
            raise UserError(
                f"the examples in {self.name} have no {LABELS}; set data.next_sentence to false"
            )

    def _make(self, part: Part, rng: np.random.Generator) -> list[np.ndarray]:
        """The columns of `format.sizes`, shuffled."""
        blocks = [self._read(*self._blocks[unit].tolist()) for unit in part.units]
        order = rng.permutation(part.size)
        return [np.concatenate([each[name] for each in blocks])[order] for name in blocks[0]]

    def _take(self, made: list[np.ndarray], places: np.ndarray) -> Iterator[np.ndarray]:
        return (column[places] for column in made)

    def _read(self, file: int, first: int, last: int) -> dict[str, np.ndarray]:
        """Parses and checks a block."""
        path = self._files[file].path
        records = self._files[file].read(first, last)
        try:
            block = self.format.parse(records)
        except ValueError:
            wrong = first + self._first_unlike(records)
            raise UserError(
                f"{path}, record {wrong + 1} has another form than the first one of {self.name}, "
                f"which has {self.format.max_length} tokens and up to "
                f"{self.format.max_predictions} masked ones; use files of one form"
            ) from None
        pieces = f"the vocabulary has {self._vocab_size} pieces"
        other, damaged = "was it made with another vocabulary?", "make or copy the file again"
        for name, limit, what, advice in (
            ("input_word_ids", self._vocab_size, pieces, other),
            ("masked_lm_ids", self._vocab_size, pieces, other),
            ("masked_lm_positions", self.format.max_length, "there are no so many tokens", damaged),
            ("input_type_ids", 2, "there are two segments", damaged),
            ("input_mask", 2, "it is 0 or 1", damaged),
            (LABELS, 2, "it is 0 or 1", damaged),
        ):
            values = block.get(name)
            if values is None:
                continue
            bad = (values < 0) | (values >= limit)
            if np.any(bad):
                row = int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))
                raise UserError(
                    f"{path}, record {first + row + 1} has {name} {values[bad][0]}, but {what}; "
                    f"{advice}"
                )
        return block

    def _first_unlike(self, records: Sequence[bytes]) -> int:
        for number, record in enumerate(records):
            try:
                self.format.parse([record])
            except ValueError:
                return number
        raise AssertionError("together they fail, one by one they do not")
