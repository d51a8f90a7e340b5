"""Cutting byte ranges out of texts, in time and memory linear in the texts.

`tf.strings.substr` would copy the whole text once for each range.
"""

import tensorflow as tf

from bert_tf.text.rows import owners, splits_of


def cut(texts: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> tf.RaggedTensor:
    """The bytes of each range: RaggedTensor string [batch, (ranges)].

    >>> starts, ends = tf.ragged.constant([[0, 4], []]), tf.ragged.constant([[3, 7], []])
    >>> cut(tf.constant(["the cat", "sat"]), starts, ends).to_list()
    [[b'the', b'cat'], []]

    Args:
        texts: string [batch].
        starts: first byte of each range in its text, RaggedTensor int32 [batch, (ranges)].
        ends: the byte after its last, likewise. The time is linear in the sum of the sizes of
            the ranges.
    """
    # Strings of one byte are held in place, without memory of their own.
    of_texts = tf.strings.bytes_split(texts)
    splits = tf.cast(of_texts.row_splits, tf.int32)
    first = starts.values + tf.gather(splits, owners(tf.cast(starts.row_splits, tf.int32)))
    sizes = ends.values - starts.values
    places = tf.ragged.range(first, first + sizes).values
    joined = tf.strings.unsorted_segment_join(
        tf.gather(of_texts.values, places), owners(splits_of(sizes)), tf.size(sizes)
    )
    return starts.with_values(joined)
