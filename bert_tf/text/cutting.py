"""Byte ranges cut out of texts, in time and memory linear in the texts.

`tf.strings.substr` would first copy the whole text for each range.
"""

import tensorflow as tf

from bert_tf.text.rows import owners, splits_of


def cut(texts: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> tf.RaggedTensor:
    """The bytes of each range: RaggedTensor string [batch, (ranges)].

    Args:
        texts: string [batch].
        starts: first byte of each range in its text, RaggedTensor int32 [batch, (ranges)].
        ends: the byte after its last, likewise. Ranges of a text do not overlap much, or what is
            linear is the sum of their sizes.
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
