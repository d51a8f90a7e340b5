"""From the vectors of a text's tokens to one vector: pooling, and the steps that may follow.

The numbers are those of sentence-transformers 6.2.0, `Pooling` and `Dense`.
"""

from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from bert_tf.encoder.encoder import Encoder

# The input that says which tokens count in pooling; it is needed only if some do not.
POOLING_MASK = "pooling_mask"
# A vector that is shorter than this is left as it is (torch's `normalize`).
_SHORTEST = 1e-12

ACTIVATIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "Identity": tf.identity,
    "Tanh": tf.tanh,
    "ReLU": tf.nn.relu,
    "GELU": tf.nn.gelu,
    "Sigmoid": tf.sigmoid,
    "SiLU": tf.nn.silu,
    "Mish": lambda x: x * tf.tanh(tf.nn.softplus(x)),
    "ELU": tf.nn.elu,
    "SELU": tf.nn.selu,
    "LeakyReLU": lambda x: tf.nn.leaky_relu(x, 0.01),
    "Softplus": tf.nn.softplus,
    "Softsign": tf.nn.softsign,
}
"""The activations of dense layers by the names of torch's classes, with torch's defaults."""


def pool(
    encoder: Encoder, inputs: Mapping[str, tf.Tensor], modes: Sequence[str], training: bool = False
) -> tf.Tensor:
    """One vector for each row, the poolings side by side: float32 [batch, len(modes) * hidden].

    - `cls`: the first token.
    - `last_token`: the last token.
    - `max`: the largest value of each axis.
    - `mean`: the mean of the tokens.
    - `mean_sqrt_len`: the sum of the tokens, divided by the square root of their number.
    - `weighted_mean`: the mean, in which the token at place n of its row has the weight n, from 1.
    - `pooled`: the pooler's output, whatever the pooling mask is.

    The encoder's inputs are int32 [batch, seq_len], and `pooling_mask` likewise, 1 at the tokens
    that count; without it all tokens count. A row in which no token counts has the vector 0, but
    with `cls` the vector of its first token. If the only modes are `cls` and `last_token`, the last
    block computes nothing for other tokens.
    """
    mask = inputs["input_mask"]
    kept = tf.not_equal(inputs.get(POOLING_MASK, mask), 0)
    if tuple(modes) == ("pooled",):
        return tf.cast(encoder.pooled(inputs, training=training), tf.float32)
    if {*modes} <= _PLACES.keys():
        places = tf.stack([_PLACES[mode](kept) for mode in modes], axis=1)
        found = encoder.encode_at(inputs, places, training=training)
        width = len(modes) * encoder.config.output_size
        vectors = tf.split(tf.reshape(tf.cast(found, tf.float32), [-1, width]), len(modes), axis=1)
    else:
        encoded, vectors = encoder.encode(inputs, training=training), []
        tokens = tf.cast(encoded.restore(), tf.float32)
        for mode in modes:
            if mode == "pooled":
                vector = encoder.pool(encoded.select(encoder.pooled_positions(mask)), mask)
                vectors.append(tf.cast(vector, tf.float32))
            elif mode in _PLACES:
                vectors.append(tf.gather(tokens, _PLACES[mode](kept), batch_dims=1))
            elif mode == "max":
                lowest = tf.where(kept[..., tf.newaxis], tokens, tf.float32.min)
                vectors.append(tf.reduce_max(lowest, axis=1))
            else:
                vectors.append(_mean(mode, tokens, tf.not_equal(mask, 0), kept))
    return tf.concat([_checked(m, v, kept) for m, v in zip(modes, vectors, strict=True)], axis=1)


def normalized(vectors: tf.Tensor) -> tf.Tensor:
    """Vectors, float [..., width], divided by their lengths; 0 stays 0."""
    squares = tf.reduce_sum(tf.square(vectors), axis=-1, keepdims=True)
    # The square root has no finite gradient at 0.
    return vectors / tf.sqrt(tf.maximum(squares, _SHORTEST**2))


def without_prompt(input_mask: tf.Tensor, prompt_length: int | tf.Tensor) -> tf.Tensor:
    """The pooling mask, int32 [batch, seq_len], without the prompt at the start of each row."""
    after = tf.range(tf.shape(input_mask)[1]) >= prompt_length
    return input_mask * tf.cast(after, input_mask.dtype)


def _first(kept: tf.Tensor) -> tf.Tensor:
    """The place of the first true value: bool [batch, seq_len] -> int32 [batch]; 0 if none is."""
    return tf.argmax(tf.cast(kept, tf.int32), axis=1, output_type=tf.int32)


def _last(kept: tf.Tensor) -> tf.Tensor:
    """The place of the last true value, likewise."""
    return tf.reduce_max(tf.where(kept, tf.range(tf.shape(kept)[1]), 0), axis=1)


_PLACES = {"cls": _first, "last_token": _last}


def _mean(mode: str, tokens: tf.Tensor, real: tf.Tensor, kept: tf.Tensor) -> tf.Tensor:
    """A mean of [batch, seq_len, hidden]; `real` and `kept` are bool [batch, seq_len]."""
    weights = tf.cast(kept, tf.float32)
    if mode == "weighted_mean":
        places = tf.range(1, tf.shape(kept)[1] + 1) - _first(real)[:, tf.newaxis]
        weights *= tf.cast(places, tf.float32)
    total = tf.reduce_sum(tokens * weights[..., tf.newaxis], axis=1)
    count = tf.reduce_sum(weights, axis=1, keepdims=True)
    return tf.math.divide_no_nan(total, tf.sqrt(count) if mode == "mean_sqrt_len" else count)


def _checked(mode: str, vectors: tf.Tensor, kept: tf.Tensor) -> tf.Tensor:
    """The vectors [batch, hidden], 0 for rows in which no token counts."""
    if mode not in ("max", "last_token"):
        return vectors
    return tf.where(tf.reduce_any(kept, axis=1, keepdims=True), vectors, 0.0)
