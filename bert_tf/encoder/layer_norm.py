"""Layer normalization (Ba et al. 2016) in float32, whatever the precision around it."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from bert_tf.encoder.compiled import compiled, is_worthwhile
from bert_tf.encoder.dropout import Drawn

Shape = tuple[int | None, ...]
# The types of `_MklLayerNorm` and its epsilon; see `bert_tf.export.fused_norms`.
FUSED_TYPES = ("float32", "bfloat16")
FUSED_EPSILON = 1e-3


@keras.saving.register_keras_serializable("bert_tf")
class LayerNorm(keras.layers.Layer):
    """Normalizes each token over its hidden axis, then scales and shifts.

    BERT's epsilon is far below what bfloat16 can resolve, hence the float32 arithmetic.
    """

    def __init__(self, epsilon: float = 1e-12, **kwargs: Any):
        # Keras would round float32 inputs to the compute dtype first.
        super().__init__(autocast=False, **kwargs)
        self.epsilon = epsilon
        # Whether `call` uses the form of `bert_tf.export.fused_norms`, with its epsilon.
        self.fused = False

    def build(self, x_shape: Shape, residual_shape: Shape | None = None) -> None:
        """Creates `gamma` and `beta`, both [hidden], kept in float32."""
        options = {"shape": (x_shape[-1],), "dtype": "float32", "autocast": False}
        self.gamma = self.add_weight(name="gamma", initializer="ones", **options)
        self.beta = self.add_weight(name="beta", initializer="zeros", **options)

    def call(
        self,
        x: tf.Tensor,
        residual: tf.Tensor | None = None,
        drawn: Drawn | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """[..., hidden] -> the same shape, in the compute dtype; `drawn` is dropout of `x`."""
        if self.fused:
            return self._fused(x, residual)
        gamma, beta = (tf.convert_to_tensor(each) for each in (self.gamma, self.beta))
        if training and residual is not None and is_worthwhile(x.shape[-1]):
            function = _compiled(self.epsilon, self.compute_dtype, drawn.dropped if drawn else 0)
            words = [drawn.words] if drawn else []
            return function(x, residual, gamma, beta, *words)
        if drawn is not None:
            x = drawn.apply(x)
        return _normalized_sum(x, residual, gamma, beta, self.epsilon, self.compute_dtype)

    def _fused(self, x: tf.Tensor, residual: tf.Tensor | None) -> tf.Tensor:
        """The same, in the dtype of x, in a form that TensorFlow's graph optimizer recognizes.

        The optimizer fuses the `add_n` into the product before it, and replaces the other
        operations by one `_MklLayerNorm`, which computes in float32. This requires exactly these
        operations, axes counted from the left, and `gamma` and `beta` as constants of the graph.
        """
        if residual is not None:
            x = tf.add_n([x, residual])
        axis = [x.shape.rank - 1]
        mean = tf.reduce_mean(x, axis, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), axis, keepdims=True)
        gamma, beta = tf.cast(self.gamma, x.dtype), tf.cast(self.beta, x.dtype)
        normalized = tf.nn.batch_normalization(x, mean, variance, beta, gamma, FUSED_EPSILON)
        return tf.cast(normalized, self.compute_dtype)

    def compute_output_shape(self, x_shape: Shape, residual_shape: Shape | None = None) -> Shape:
        return x_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"epsilon": self.epsilon}


def _normalized_sum(
    x: tf.Tensor,
    residual: tf.Tensor | None,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    epsilon: float,
    dtype: str,
) -> tf.Tensor:
    x = tf.cast(x, tf.float32)
    if residual is not None:  # rounded to bfloat16, a sum has a quarter more error
        x += tf.cast(residual, tf.float32)
    # Forward and backward, this is a third faster than tf.nn.moments with
    # tf.nn.batch_normalization, which subtract the mean twice.
    centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
    return tf.cast(beta + centred * (tf.math.rsqrt(variance + epsilon) * gamma), dtype)


@functools.lru_cache
def _compiled(epsilon: float, dtype: str, dropped: int) -> Callable[..., tf.Tensor]:
    """(x, residual, gamma, beta), and words if any are dropped -> their normalized sum."""

    def function(
        x: tf.Tensor,
        residual: tf.Tensor,
        gamma: tf.Tensor,
        beta: tf.Tensor,
        words: tf.Tensor | None = None,
    ) -> tf.Tensor:
        x = tf.cast(x, tf.float32)
        if words is not None:
            x = Drawn(words, dropped).apply(x)
        return _normalized_sum(x, residual, gamma, beta, epsilon, dtype)

    return compiled(function)
