"""Index arithmetic on ragged rows, linear in the number of their values.

A ragged batch is stored as one flat list of values and the splits of its rows. TensorFlow's own
`tf.repeat` and `RaggedTensor.value_rowids` build a mask of [rows, longest row]: one long text in a
batch would make that mask very large.
"""

import tensorflow as tf


def owners(splits: tf.Tensor) -> tf.Tensor:
    """The row of each value: int32 [values].

    >>> owners(tf.constant([0, 2, 2, 5])).numpy().tolist()  # rows of 2, 0 and 3 values
    [0, 0, 2, 2, 2]

    Args:
        splits: int32 [rows + 1], ascending from 0 to the number of values; a row's first value.
    """
    size = splits[-1]
    return tf.cumsum(counts(splits[1:-1], size + 1))[:size]


def starts_row(splits: tf.Tensor) -> tf.Tensor:
    """True at the first value of each row: bool [values].

    >>> starts_row(tf.constant([0, 2, 2, 5])).numpy().tolist()
    [True, False, True, False, False]
    """
    size = splits[-1]
    return counts(splits, size + 1)[:size] > 0


def splits_of(lengths: tf.Tensor) -> tf.Tensor:
    """The start of each row of these lengths, and the end of the last row: int32 [rows + 1].

    >>> splits_of(tf.constant([2, 0, 3])).numpy().tolist()
    [0, 2, 2, 5]
    """
    return tf.concat([[0], tf.cumsum(lengths)], axis=0)


def joined_starts(sizes: tf.Tensor, splits: tf.Tensor) -> tf.Tensor:
    """The byte where each string starts in its row, joined by single spaces: int32 [values].

    >>> splits = tf.constant([0, 2, 3])
    >>> joined_starts(tf.constant([3, 4, 5]), splits).numpy().tolist()  # "the cats" and "sleep"
    [0, 4, 0]
    """
    starts = splits_of(sizes + 1)
    return starts[:-1] - tf.gather(starts, tf.gather(splits, owners(splits)))


def ragged(values: tf.Tensor, splits: tf.Tensor) -> tf.RaggedTensor:
    """Rows of values [values, ...], with splits int64 as most ops of TensorFlow make them.

    >>> ragged(tf.constant([5, 6, 7]), splits=tf.constant([0, 2, 3])).to_list()
    [[5, 6], [7]]
    """
    return tf.RaggedTensor.from_row_splits(values, tf.cast(splits, tf.int64), validate=False)


def counts(numbers: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """How often each number below `size` is in `numbers`: int32 [size].

    >>> counts(tf.constant([0, 2, 2]), size=4).numpy().tolist()
    [1, 0, 2, 0]
    """
    return tf.math.unsorted_segment_sum(tf.ones_like(numbers), numbers, size)


def positions(mask: tf.Tensor) -> tf.Tensor:
    """The positions where `mask`, bool [n], is True: int32 [trues].

    >>> positions(tf.constant([False, True, True])).numpy().tolist()
    [1, 2]
    """
    return tf.cast(tf.where(mask)[:, 0], tf.int32)
