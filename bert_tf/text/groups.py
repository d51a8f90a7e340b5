"""Work on any number of long texts in bounded memory."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from bert_tf.text.parts import map_in_parts

# Bytes of text that are tokenized at a time; that takes some 25 times as much memory.
MAX_BYTES = 8_000_000


def map_in_groups(
    function: Callable[[Mapping[str, tf.Tensor]], Any],
    texts: Mapping[str, tf.Tensor],
    max_bytes: int = MAX_BYTES,
) -> Any:
    """`function` of all rows, a bounded number of bytes at a time; what it gives is joined.

    Args:
        function: as for `map_in_parts`.
        texts: each string [batch].
        max_bytes: most bytes in a group of rows; a row with more is a group by itself.
    """
    sizes = tf.add_n([tf.cast(tf.strings.length(each), tf.int64) for each in texts.values()])
    ends = tf.cumsum(sizes)
    before = tf.concat([tf.zeros([1], tf.int64), ends], axis=0)

    def stop_after(start: tf.Tensor) -> tf.Tensor:
        fitting = tf.searchsorted(ends, [before[start] + max_bytes], side="right")[0]
        return tf.maximum(fitting, start + 1)

    return map_in_parts(function, texts, stop_after)
