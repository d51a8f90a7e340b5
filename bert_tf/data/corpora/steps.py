"""Numbered rows to `tf.data` batches that can start at any step, and be shared by workers."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from bert_tf.data.until_exit import map_until_exit
from bert_tf.errors import UserError

# A stretch of steps has about so many rows. To work on them together costs much less than to work
# on batch after batch.
_STRETCH_ROWS = 512

ReadRows = Callable[[int, int, int], Sequence[np.ndarray]]
"""(start, stop, step) -> columns, each [rows, …], of the rows start, start + step, … below stop."""

Elements = tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]
"""Inputs and targets, each [rows, …]."""


class StepReader:
    """Reads the rows of a step, and keeps the error of a failed read.

    >>> reader = StepReader()
    >>> batches = reader.batches(
    ...     read_rows=lambda start, stop, step: [np.arange(start, stop, step)],
    ...     types=[tf.int64],
    ...     finish=lambda stretch, rows: ({"row": tf.reshape(rows, [-1])}, {}),
    ...     batch_size=2,
    ...     first=5,
    ...     steps=2,
    ... )
    >>> with reader.explained_errors():
    ...     print([inputs["row"].numpy().tolist() for inputs, _ in batches])
    [[10, 11], [12, 13]]
    """

    def __init__(self) -> None:
        # The text of a UserError: the error itself would hold on to the datasets in its traceback.
        self._failure: str | None = None

    def batches(
        self,
        read_rows: ReadRows,
        types: Sequence[tf.DType],
        finish: Callable[..., Elements],
        batch_size: int,
        first: int = 0,
        steps: int | None = None,
        worker: int = 0,
        workers: int = 1,
    ) -> tf.data.Dataset:
        """A dataset of (inputs, targets), each [batch, …].

        Args:
            read_rows: gives the rows, step k's from k * batch_size on. Called from tf.data's
                threads, one call at a time, ahead of whoever reads the dataset.
            types: of the columns.
            finish: TensorFlow ops that make inputs and targets of the rows of a stretch of steps,
                given its number, int64 [], and the columns. Stretches are the same wherever the
                dataset starts, so that random numbers may follow from them.
            batch_size: rows of the global batch.
            first: the step to start at.
            steps: the number of steps; None never ends.
            worker, workers: the rows `worker::workers` of every global batch.

        Raises:
            UserError: `read_rows` raises it for the first row. A later error of `read_rows` ends
                the dataset with a TensorFlow error, which `explained_errors` turns back.
        """
        mine = batch_size // workers
        together = max(1, _STRETCH_ROWS // batch_size)
        # Here, where a mistake can be reported as what it is.
        read_rows(first * batch_size + worker, first * batch_size + worker + 1, 1)

        def read(stretch: np.ndarray) -> tuple[np.ndarray, ...]:
            start = int(stretch) * together * batch_size
            try:
                columns = read_rows(start + worker, start + together * batch_size, workers)
            except UserError as error:
                self._failure = str(error)
                raise
            return stretch, *columns

        def cut(stretch: tf.Tensor, *columns: tf.Tensor) -> Elements:
            elements = finish(tf.ensure_shape(stretch, []), *columns)
            return tf.nest.map_structure(
                lambda rows: tf.reshape(rows, [together, mine, *rows.shape[1:]]), elements
            )

        stretches = tf.data.Dataset.counter(first // together)
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
