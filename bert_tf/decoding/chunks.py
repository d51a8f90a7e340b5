"""Work on many windows in bounded memory."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

# Tokens, padding included, that a model is given at a time; attention of BERT-base on so many
# windows of 384 tokens takes some 200 MB.
MAX_TOKENS = 16_384


def map_in_chunks(
    function: Callable[[Mapping[str, tf.Tensor]], Any],
    inputs: Mapping[str, tf.Tensor],
    max_tokens: int = MAX_TOKENS,
) -> Any:
    """`function` of all rows, a bounded number of them at a time.

    Args:
        function: gives tensors [rows, ...] whose other axes do not depend on the rows at hand; it
            must take a batch of no rows.
        inputs: tensors [rows, seq_len].
        max_tokens: most tokens in a chunk, padding included; a single longer row is taken alone.
    """
    inputs = dict(inputs)
    shape = tf.shape(next(iter(inputs.values())))
    rows, per_chunk = shape[0], tf.maximum(max_tokens // tf.maximum(shape[1], 1), 1)

    # No rows are a chunk too, which tells what the other axes are.
    chunks = tf.maximum(-(-rows // per_chunk), 1)

    # What the outputs are.
    outputs = tf.function(function, autograph=False).get_concrete_function(
        {name: tf.TensorSpec([None, *each.shape[1:]], each.dtype) for name, each in inputs.items()}
    )
    arrays = [
        tf.TensorArray(each.dtype, size=chunks, infer_shape=False, element_shape=each.shape)
        for each in tf.nest.flatten(outputs.structured_outputs)
    ]

    def step(chunk: tf.Tensor, arrays: list[tf.TensorArray]) -> tuple:
        here = slice(chunk * per_chunk, tf.minimum((chunk + 1) * per_chunk, rows))
        part = tf.nest.flatten(function({name: each[here] for name, each in inputs.items()}))
        return chunk + 1, [a.write(chunk, v) for a, v in zip(arrays, part, strict=True)]

    _, arrays = tf.while_loop(
        lambda chunk, _: chunk < chunks, step, (tf.constant(0), arrays), parallel_iterations=1
    )
    # A loop's arrays forget their shapes.
    results = [
        tf.ensure_shape(array.concat(), [None, *each.shape[1:]])
        for array, each in zip(arrays, tf.nest.flatten(outputs.structured_outputs), strict=True)
    ]
    return tf.nest.pack_sequence_as(outputs.structured_outputs, results)
