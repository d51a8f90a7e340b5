"""Numbered rows -> tf.data batches that can start at any step, and be shared by workers."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from bert_tf.data.until_exit import map_until_exit
from bert_tf.errors import UserError

# So many rows are read in one go: it costs little more than reading a few.
_ROWS_READ = 512

ReadRows = Callable[[int, int, int], Sequence[np.ndarray]]
"""(start, stop, step) -> columns, each [rows, …], of the rows start, start + step, … below stop."""


class StepReader:
    """Reads the rows of a step, and remembers what went wrong."""

    def __init__(self) -> None:
        # The text of a UserError: the error itself would hold on to the datasets in its traceback.
        self._failure: str | None = None

    def batches(
        self,
        read_rows: ReadRows,
        types: Sequence[tf.DType],
        batch_size: int,
        first: int = 0,
        steps: int | None = None,
        worker: int = 0,
        workers: int = 1,
    ) -> tf.data.Dataset:
        """A dataset of (step int64 [], the columns [batch, …] of that step's rows).

        Args:
            read_rows: gives the rows, step k's at k * batch_size. Called from tf.data's threads,
                one call at a time, ahead of whoever reads the dataset.
            types: of the columns.
            batch_size: rows of the global batch.
            first: the step to start at.
            steps: how many steps; None is without end.
            worker, workers: the rows `worker::workers` of every global batch.

        Raises:
            UserError: what `read_rows` raises for the first row. What it raises later ends the
                dataset with a TensorFlow error, which `explained_errors` turns back.
        """
        mine = batch_size // workers
        together = max(1, _ROWS_READ // mine)
        last = None if steps is None else first + steps
        # Here, where a mistake can be reported as what it is.
        read_rows(first * batch_size + worker, first * batch_size + worker + 1, 1)

        def read(step: np.ndarray) -> tuple[np.ndarray, ...]:
            stop = int(step) + together if last is None else min(int(step) + together, last)
            try:
                columns = read_rows(int(step) * batch_size + worker, stop * batch_size, workers)
            except UserError as error:
                self._failure = str(error)
                raise
            numbers = np.arange(step, stop)
            return numbers, *(c.reshape(len(numbers), mine, *c.shape[1:]) for c in columns)

        if last is None:
            starts = tf.data.Dataset.counter(first, together)
        else:
            starts = tf.data.Dataset.range(first, last, together)
        batches = map_until_exit(starts, read, [tf.int64, *types]).unbatch()
        # Keras wants to know beforehand where a dataset ends.
        cardinality = tf.data.INFINITE_CARDINALITY if steps is None else steps
        return batches.apply(tf.data.experimental.assert_cardinality(cardinality))

    @contextlib.contextmanager
    def explained_errors(self) -> Iterator[None]:
        """Around a loop over the datasets: raises the `UserError` behind a TensorFlow error."""
        try:
            yield
        except tf.errors.OpError:
            if self._failure is None:
                raise
            raise UserError(self._failure) from None
