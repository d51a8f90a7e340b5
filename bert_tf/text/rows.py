"""Index arithmetic on ragged rows, linear in the number of their values.

TensorFlow's own `tf.repeat` and `RaggedTensor.value_rowids` build a mask of [rows, longest row],
which one long text in a batch makes very large.
"""

import tensorflow as tf


def owners(splits: tf.Tensor) -> tf.Tensor:
    """The row of each value: int32 [values]; splits [0, 2, 2, 5] give [0, 0, 2, 2, 2]."""
    size = splits[-1]
    return tf.cumsum(counts(splits[1:-1], size + 1))[:size]


def starts_row(splits: tf.Tensor) -> tf.Tensor:
    """True at the first value of each row: bool [values]."""
    size = splits[-1]
    return counts(splits, size + 1)[:size] > 0


def splits_of(lengths: tf.Tensor) -> tf.Tensor:
    """The start of each row, and the end of the last: [2, 0, 3] give int32 [0, 2, 2, 5]."""
    return tf.concat([[0], tf.cumsum(lengths)], axis=0)


def joined_starts(sizes: tf.Tensor, splits: tf.Tensor) -> tf.Tensor:
    """The byte where each string starts in its row, joined by single spaces: int32 [values]."""
    starts = splits_of(sizes + 1)
    return starts[:-1] - tf.gather(starts, tf.gather(splits, owners(splits)))


def ragged(values: tf.Tensor, splits: tf.Tensor) -> tf.RaggedTensor:
    """Rows of values [values, ...], with splits int64 as most ops of TensorFlow make them."""
    return tf.RaggedTensor.from_row_splits(values, tf.cast(splits, tf.int64), validate=False)


def counts(numbers: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """How often each number below `size` is in `numbers`: int32 [size]."""
    return tf.math.unsorted_segment_sum(tf.ones_like(numbers), numbers, size)


def positions(mask: tf.Tensor) -> tf.Tensor:
    """The positions where `mask`, bool [n], is True: int32 [trues]."""
    return tf.cast(tf.where(mask)[:, 0], tf.int32)
