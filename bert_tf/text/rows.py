"""Index arithmetic on ragged rows, linear in the number of their values.

TensorFlow's own `tf.repeat` and `RaggedTensor.value_rowids` go through a mask of [rows, longest
row]: one long text in a batch makes it as large as memory.
"""

import tensorflow as tf


def owners(splits: tf.Tensor) -> tf.Tensor:
    """The row of each value: int32 [values].

    Args:
        splits: int32 [rows + 1], ascending from 0 to the number of values; a row's first value.
    """
    size = splits[-1]
    rows_before = splits[1:-1]
    started = tf.math.unsorted_segment_sum(tf.ones_like(rows_before), rows_before, size + 1)
    return tf.cumsum(started)[:size]


def starts_row(splits: tf.Tensor) -> tf.Tensor:
    """True at the first value of each row: bool [values]."""
    size = splits[-1]
    return tf.math.unsorted_segment_sum(tf.ones_like(splits), splits, size + 1)[:size] > 0


def splits_of(lengths: tf.Tensor) -> tf.Tensor:
    """Where rows of these lengths start, and the last one ends: int32 [rows + 1]."""
    return tf.concat([[0], tf.cumsum(lengths)], axis=0)


def positions(mask: tf.Tensor) -> tf.Tensor:
    """Where `mask`, bool [n], is True: int32 [trues]."""
    return tf.cast(tf.where(mask)[:, 0], tf.int32)
