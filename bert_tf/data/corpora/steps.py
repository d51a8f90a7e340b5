"""Numbered examples to `tf.data` batches that can start at any step, and be shared by workers."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.data.corpora.order import PooledExamples
from bert_tf.data.until_exit import counter, map_until_exit
from bert_tf.errors import UserError

# The approximate number of rows in a stretch of steps. Processing them together costs much less
# than processing batch after batch.
_STRETCH_ROWS = 512

# Held-out batches are the same for every seed of training, so that their losses can be compared.
DEV_SEED = 0

Tensors = list[tf.Tensor]
Elements = tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]  # inputs and targets, each [rows, …]


class StepData(ABC):
    """Batches of examples; that of step k begins with example k * batch_size. It follows from the
    seed, the data and k alone, so a run that resumes starts at its step at once.
    """

    def __init__(self, train: PooledExamples, batch_size: int, size: str):
        if batch_size > train.per_epoch:
            raise UserError(
                f"batch size {batch_size} is larger than the data ({size}); lower train.batch_size"
            )
        self.steps_per_epoch = train.per_epoch // batch_size
        self._train, self._batch_size = train, batch_size
        # The text of a UserError: the error itself would hold on to the datasets in its traceback.
        self._failure: str | None = None

    @abstractmethod
    def _held_out(self) -> PooledExamples | None:
        """The examples that are never trained on; None if there are none."""

    @abstractmethod
    def _elements(
        self, examples: Any, stretch: tf.Tensor, columns: Tensors, worker: int, workers: int
    ) -> Elements:
        """Makes inputs and targets, by TensorFlow ops, from `columns` of `examples.rows`, which are
        the rows of the stretch of steps with the number `stretch`, int64 []. Stretches are the same
        wherever a dataset starts, so random numbers may follow from that number.
        """

    def dataset(self, start_step: int = 0, worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """The batches of (inputs, targets) from `start_step` on, without end.

        The global batch is the same for any number of workers; each has the rows `worker::workers`.
        Inputs are `input_word_ids`, `input_mask`, `input_type_ids` int32 [batch, seq_len], and
        `masked_lm_positions` int32 [batch, predictions]. Targets are `masked_lm_ids` int32 and
        `masked_lm_weights` float32 [batch, predictions], and, with next_sentence,
        `next_sentence_labels` int32 [batch], 0 for a true next segment and 1 for a random one.

        If the first examples cannot be read, it raises a UserError. A later read that fails ends
        the dataset with a TensorFlow error, which `explained_errors` turns into a UserError.
        """
        if self._batch_size % workers:
            raise UserError(
                f"train.batch_size {self._batch_size} is not a multiple of the number of workers, "
                f"{workers}; change it"
            )
        return self._batches(self._train, start_step, None, worker, workers)

    def dev_dataset(self, steps: int, worker: int = 0, workers: int = 1) -> tf.data.Dataset | None:
        """As `dataset`, for `steps` held-out batches, equal for every seed; None if none exist."""
        examples = self._held_out()
        return examples and self._batches(examples, 0, steps, worker, workers)

    def _batches(
        self, examples: PooledExamples, first: int, steps: int | None, worker: int, workers: int
    ) -> tf.data.Dataset:
        """The batches from step `first` on; without end if `steps` is None."""
        size, mine = self._batch_size, self._batch_size // workers
        together = max(1, _STRETCH_ROWS // size)
        # The first row is read here, where a mistake raises its own error.
        like = examples.rows(first * size + worker, first * size + worker + 1, 1)

        def read(stretch: np.ndarray) -> tuple[np.ndarray, ...]:
            start = int(stretch) * together * size
            try:
                columns = examples.rows(start + worker, start + together * size, workers)
            except UserError as error:
                self._failure = str(error)
                raise
            return stretch, *columns

        def cut(stretch: tf.Tensor, *columns: tf.Tensor) -> Elements:
            known = [
                tf.ensure_shape(column, [None, *one.shape[1:]])
                for column, one in zip(columns, like, strict=True)
            ]
            elements = self._elements(
                examples, tf.ensure_shape(stretch, []), known, worker, workers
            )
            return tf.nest.map_structure(
                lambda rows: tf.reshape(rows, [together, mine, *rows.shape[1:]]), elements
            )

        stretches = counter(first // together)
        types = [tf.as_dtype(column.dtype) for column in like]
        read_ones = map_until_exit(stretches, read, [tf.int64, *types])
        # Stretches of rows are read one after the other, so that each pool is planned once. Two
        # stretches are finished at a time.
        finished = read_ones.map(cut, num_parallel_calls=2, deterministic=True)
        batches = finished.unbatch().skip(first % together)
        if steps is None:
            cardinality = tf.data.INFINITE_CARDINALITY
        else:
            batches, cardinality = batches.take(steps), steps
        # Keras needs to know in advance where a dataset ends.
        counted = batches.apply(tf.data.experimental.assert_cardinality(cardinality))
        return counted.prefetch(tf.data.AUTOTUNE)

    @contextlib.contextmanager
    def explained_errors(self) -> Iterator[None]:
        """Around a loop over the datasets: raises the `UserError` behind a TensorFlow error."""
        try:
            yield
        except tf.errors.OpError:
            if self._failure is None:
                raise
            raise UserError(self._failure) from None
