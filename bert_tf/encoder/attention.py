"""Multi-head self-attention (Vaswani et al. 2017, section 3.2) on flat tokens."""

import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from bert_tf.compat import custom_gradient
from bert_tf.encoder.layers import Drawn, Dropout, Linear
from bert_tf.encoder.layout import TokenLayout

# Added to the score of a hidden key, whose probability is then exactly zero.
_HIDDEN_KEY = -1e9


def padding_bias(key_mask: tf.Tensor) -> tf.Tensor:
    """float32 [batch, 1, 1, row_len]: added to scores, so that no query sees padding."""
    return bias_of(key_mask[:, tf.newaxis, tf.newaxis, :])


def bias_of(visible: tf.Tensor) -> tf.Tensor:
    """float32 of the shape of `visible`, bool: 0 where it is true, else a large negative number."""
    return tf.where(visible, 0.0, _HIDDEN_KEY)


@keras.saving.register_keras_serializable("bert_tf")
class SelfAttention(keras.layers.Layer):
    """softmax(Q K^T / sqrt(d) + bias) V over each row, then a linear output.

    Query, key and value come from one matrix product, `query_key_value`, whose kernel is
    [hidden, 3 * num_heads * head_size]: first the columns of the query, then of the key, then of
    the value. A `head_size` of None is the hidden size divided by the number of heads.
    """

    def __init__(
        self,
        num_heads: int,
        dropout: float,
        initializer_range: float = 0.02,
        head_size: int | None = None,
        **kwargs: Any,
    ):
        # Keras would cast `bias` to the compute dtype; training masks scores in float32.
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads
        self.dropout_rate = dropout
        self.initializer_range = initializer_range
        self.head_size = head_size
        self.dropout = Dropout(dropout, name="dropout", dtype=self.dtype_policy)

    def build(self, input_shape: tuple[int | None, int]) -> None:
        hidden = input_shape[-1]
        shared = {"initializer_range": self.initializer_range, "dtype": self.dtype_policy}
        self._width = self.num_heads * (self.head_size or hidden // self.num_heads)
        self.query_key_value = Linear(3 * self._width, name="query_key_value", **shared)
        self.output_projection = Linear(hidden, name="output", **shared)
        self.query_key_value.build((None, hidden))
        self.output_projection.build((None, self._width))

    def call(
        self,
        tokens: tf.Tensor,
        layout: TokenLayout,
        bias: tf.Tensor,
        training: bool = False,
        positions: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """[tokens, hidden] -> [tokens, hidden], or [batch * n, hidden] at `positions` [batch, n].

        `bias` is float32, broadcastable to [batch, heads, row_len or n, row_len]. The intermediates
        are arbitrary at padding. `attention_probabilities`, [batch, heads, row_len or n, row_len],
        before dropout, are the share of each key (last axis) that a query takes. They come from
        `query`, [batch, heads, row_len or n, head_size], and `key`; `key` and `value` are
        [batch, heads, row_len, head_size].
        """
        projected = self.query_key_value(tokens, training=training)
        if positions is None:
            query, key, value = layout.to_heads(projected, self.num_heads, 3)
        else:
            query, seen = tf.split(projected, [self._width, 2 * self._width], axis=-1)
            size = self._width // self.num_heads
            heads = tf.concat([tf.shape(positions), [self.num_heads, size]], axis=0)
            query = tf.reshape(layout.select(query, positions), heads)
            query = tf.transpose(query, [0, 2, 1, 3])
            key, value = layout.to_heads(seen, self.num_heads, 2)
        probabilities = attention_probabilities(query, key, bias, for_gradient=training)
        drawn = self.dropout.draw(tf.shape(probabilities), training)
        mixed = _mixed(probabilities, value, drawn)
        if positions is None:
            mixed = layout.from_heads(mixed)
        else:
            mixed = tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [-1, self._width])
        return self.output_projection(mixed, training=training), {
            "attention_probabilities": probabilities,
            "query": query,
            "key": key,
            "value": value,
        }

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "num_heads": self.num_heads,
            "dropout": self.dropout_rate,
            "initializer_range": self.initializer_range,
            "head_size": self.head_size,
        }


def attention_probabilities(
    query: tf.Tensor, key: tf.Tensor, bias: tf.Tensor, for_gradient: bool
) -> tf.Tensor:
    """softmax(Q K^T / sqrt(head_size) + bias), [batch, heads, n, row_len].

    Outside training, bfloat16 needs no float32 in between: the result is as exact, and product,
    scale and bias become one kernel. In training, the gradient's error would grow by up to half.
    """
    dtype = tf.float32 if for_gradient else query.dtype
    scores = tf.cast(tf.matmul(query, key, transpose_b=True), dtype)
    if dtype == tf.float16:
        # Half of the lowest float16, since the softmax of only infinite scores is NaN.
        bias = tf.maximum(bias, dtype.min / 2)
    scores = scores * (1.0 / math.sqrt(query.shape[-1])) + tf.cast(bias, dtype)
    return _softmax(scores, query.dtype) if for_gradient else tf.nn.softmax(scores)


def _softmax(scores: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """softmax(scores) in `dtype`; only this result is kept for the gradient."""

    @custom_gradient
    def differentiable(scores: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        probabilities = tf.cast(tf.nn.softmax(scores), dtype)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            # Without the dependency, TensorFlow computes the cast in the forward pass and keeps it.
            with tf.control_dependencies([upstream]):
                shares = tf.cast(probabilities, scores.dtype)
            weighted = shares * tf.cast(upstream, scores.dtype)
            return weighted - shares * tf.reduce_sum(weighted, axis=-1, keepdims=True)

        return probabilities, gradient

    return differentiable(scores)


def _mixed(probabilities: tf.Tensor, value: tf.Tensor, drawn: Drawn | None) -> tf.Tensor:
    """The values, weighted by the probabilities after dropout.

    [batch, heads, n, row_len], [batch, heads, row_len, size] -> [batch, heads, n, size].
    """
    if drawn is None:
        return tf.matmul(probabilities, value)

    @custom_gradient
    def mixed(probabilities: tf.Tensor, value: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            # Dropout is applied again: its result would take as much memory as the probabilities.
            with tf.control_dependencies([upstream]):
                left = drawn.apply(probabilities)
            by_left = tf.matmul(upstream, value, transpose_b=True)
            return drawn.apply(by_left), tf.matmul(left, upstream, transpose_a=True)

        return tf.matmul(drawn.apply(probabilities), value), gradient

    return mixed(probabilities, value)
