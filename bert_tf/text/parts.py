"""Work on many rows, some of them at a time."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf


def map_in_parts(
    function: Callable[[Mapping[str, tf.Tensor]], Any],
    inputs: Mapping[str, tf.Tensor],
    stop_after: Callable[[tf.Tensor], tf.Tensor],
) -> Any:
    """`function` of all rows, part after part; what it gives is joined.

    Args:
        function: gives tensors whose first axis may be joined with that of other rows, and whose
            other axes do not depend on the rows at hand; it must take a part of no rows.
        inputs: tensors [rows, ...].
        stop_after: where the part that starts at a row, int32 [], ends; it may be behind the last
            row, and is behind the start.
    """
    inputs = dict(inputs)
    rows = tf.shape(next(iter(inputs.values())))[0]
    # What the outputs are.
    traced = tf.function(function, autograph=False).get_concrete_function(
        {name: tf.TensorSpec([None, *each.shape[1:]], each.dtype) for name, each in inputs.items()}
    )
    forms = tf.nest.flatten(traced.structured_outputs)
    arrays = [
        tf.TensorArray(
            each.dtype, 0, dynamic_size=True, infer_shape=False, element_shape=each.shape
        )
        for each in forms
    ]

    def is_more(start: tf.Tensor, arrays: list[tf.TensorArray]) -> tf.Tensor:
        # No rows are a part too, which tells what the other axes are.
        return (start < rows) | (arrays[0].size() == 0)

    def step(start: tf.Tensor, arrays: list[tf.TensorArray]) -> tuple:
        stop = tf.minimum(stop_after(start), rows)
        part = tf.nest.flatten(function({name: each[start:stop] for name, each in inputs.items()}))
        place = arrays[0].size()
        return stop, [a.write(place, v) for a, v in zip(arrays, part, strict=True)]

    _, arrays = tf.while_loop(is_more, step, (tf.constant(0), arrays), parallel_iterations=1)
    # A loop's arrays forget their shapes.
    results = [
        tf.ensure_shape(array.concat(), [None, *each.shape[1:]])
        for array, each in zip(arrays, forms, strict=True)
    ]
    return tf.nest.pack_sequence_as(traced.structured_outputs, results)
