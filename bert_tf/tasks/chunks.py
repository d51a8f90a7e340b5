"""Work on many windows in bounded memory."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from bert_tf.text.parts import map_in_parts

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
        function: as for `map_in_parts`, of as many rows as it is given.
        inputs: tensors [rows, seq_len].
        max_tokens: most tokens in a chunk, padding included; a single longer row is taken alone.
    """
    length = tf.shape(next(iter(inputs.values())))[1]
    per_chunk = tf.maximum(max_tokens // tf.maximum(length, 1), 1)
    return map_in_parts(function, inputs, lambda start: start + per_chunk)
