"""Work on any number of long texts in bounded memory."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

# Bytes of text that are tokenized at a time; that takes some 25 times as much memory.
MAX_BYTES = 8_000_000


def map_in_groups(
    function: Callable[[Mapping[str, tf.Tensor]], Any],
    texts: Mapping[str, tf.Tensor],
    max_bytes: int = MAX_BYTES,
) -> Any:
    """`function` of all rows, a bounded number of bytes at a time; what it gives is joined.

    Args:
        function: gives tensors whose first axis may be joined with that of other rows, and whose
            other axes do not depend on the rows at hand.
        texts: each string [batch].
        max_bytes: most bytes in a group of rows; a row with more is a group by itself.
    """
    texts = dict(texts)
    sizes = tf.add_n([tf.cast(tf.strings.length(each), tf.int64) for each in texts.values()])
    ends, rows = tf.cumsum(sizes), tf.size(sizes)
    before = tf.concat([tf.zeros([1], tf.int64), ends], axis=0)

    # What the outputs are.
    outputs = tf.function(function, autograph=False).get_concrete_function(
        {name: tf.TensorSpec([None], tf.string) for name in texts}
    )
    arrays = [
        tf.TensorArray(
            each.dtype, 0, dynamic_size=True, infer_shape=False, element_shape=each.shape
        )
        for each in tf.nest.flatten(outputs.structured_outputs)
    ]

    def is_more(start: tf.Tensor, arrays: list[tf.TensorArray]) -> tf.Tensor:
        # No rows are a group too, which tells what the other axes are.
        return (start < rows) | (arrays[0].size() == 0)

    def step(start: tf.Tensor, arrays: list[tf.TensorArray]) -> tuple:
        fitting = tf.searchsorted(ends, [before[start] + max_bytes], side="right")[0]
        stop = tf.minimum(tf.maximum(fitting, start + 1), rows)
        part = tf.nest.flatten(function({name: each[start:stop] for name, each in texts.items()}))
        place = arrays[0].size()
        return stop, [a.write(place, v) for a, v in zip(arrays, part, strict=True)]

    _, arrays = tf.while_loop(is_more, step, (tf.constant(0), arrays), parallel_iterations=1)
    results = [each.concat() for each in arrays]
    return tf.nest.pack_sequence_as(outputs.structured_outputs, results)
