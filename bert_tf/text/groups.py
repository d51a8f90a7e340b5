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
    # One trace, for both paths and for what the outputs are.
    traced = tf.function(function, autograph=False).get_concrete_function(
        {name: tf.TensorSpec([None], tf.string) for name in texts}
    )
    outputs = tf.nest.flatten(traced.structured_outputs)

    def whole() -> list[tf.Tensor]:
        return tf.nest.flatten(traced(texts))

    def grouped() -> list[tf.Tensor]:
        arrays = [
            tf.TensorArray(
                each.dtype, 0, dynamic_size=True, infer_shape=False, element_shape=each.shape
            )
            for each in outputs
        ]

        def step(start: tf.Tensor, arrays: list[tf.TensorArray]) -> tuple:
            before = ends[start] - sizes[start]
            fitting = tf.searchsorted(ends, [before + max_bytes], side="right")[0]
            stop = tf.maximum(fitting, start + 1)
            part = tf.nest.flatten(traced({name: each[start:stop] for name, each in texts.items()}))
            place = arrays[0].size()
            return stop, [a.write(place, v) for a, v in zip(arrays, part, strict=True)]

        _, arrays = tf.while_loop(
            lambda start, _: start < rows, step, (tf.constant(0), arrays), parallel_iterations=1
        )
        return [each.concat() for each in arrays]

    results = tf.cond(tf.reduce_sum(sizes) <= max_bytes, whole, grouped)
    return tf.nest.pack_sequence_as(traced.structured_outputs, results)
