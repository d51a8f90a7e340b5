"""The small layers of which blocks are made: dense layer, dropout and layer normalization."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from bert_tf.compat import custom_gradient
from bert_tf.encoder import activations
from bert_tf.encoder.compiled import compiled, is_worthwhile
from bert_tf.encoder.rematerialized import drawn_once
from bert_tf.errors import UserError


@keras.saving.register_keras_serializable("bert_tf")
class Linear(keras.layers.Layer):
    """activation(x @ kernel + bias) for x [tokens, input_size].

    TensorFlow's CPU graph optimizer fuses MatMul, BiasAdd and GELU only if they follow each other
    on a matrix. Keras's `Dense` adds its bias with a general addition after a reshape.
    """

    # An adapter's term for x @ kernel, from x and `training`; see `bert_tf.training.adapter`.
    update: Callable[[tf.Tensor, bool], tf.Tensor] | None = None

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.units = units
        self.activation = activation
        self.initializer_range = initializer_range
        self._activate = activations.by_name(activation)
        self._activate_in_training = activations.by_name(activation, training=True)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates `kernel` [input_size, units] and `bias` [units]."""
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], self.units),
            initializer=truncated_normal(self.initializer_range),
        )
        self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")

    def call(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        """[tokens, input_size] -> [tokens, units]."""
        activate = self._activate_in_training if training else self._activate
        products = tf.matmul(tokens, self.kernel)
        if self.update is not None:
            products += self.update(tokens, training)
        return activate(_with_bias(products, tf.convert_to_tensor(self.bias)))

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "units": self.units,
            "activation": self.activation,
            "initializer_range": self.initializer_range,
        }


@custom_gradient
def _with_bias(products: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """`tf.nn.bias_add` with a gradient of the bias that is summed in float32."""

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # TensorFlow's `BiasAddGrad` sums bfloat16 in bfloat16: for 1,024 normal numbers, its error
        # was a quarter of the sum's deviation. This product takes two thirds of the time.
        ones = tf.ones([1, tf.shape(upstream)[0]], upstream.dtype)
        return upstream, tf.matmul(ones, upstream)[0]

    return tf.nn.bias_add(products, bias), gradient


def truncated_normal(initializer_range: float) -> keras.initializers.Initializer:
    """BERT's initializer: normal, redrawn beyond two standard deviations."""
    return keras.initializers.TruncatedNormal(stddev=initializer_range)


@dataclasses.dataclass(frozen=True)
class Drawn:
    """The random numbers that dropout has drawn for a tensor."""

    words: tf.Tensor  # uint16 of the tensor's shape, uniform
    dropped: int  # elements whose word is below this number are dropped

    @property
    def scale(self) -> float:
        return 2**16 / (2**16 - self.dropped)

    def apply(self, x: tf.Tensor) -> tf.Tensor:
        """The tensor after dropout. One byte per element is kept for the gradient."""
        kept = self.words >= tf.constant(self.dropped, tf.uint16)

        def scaled(x: tf.Tensor) -> tf.Tensor:
            return x * (tf.cast(kept, x.dtype) * tf.cast(self.scale, x.dtype))

        @custom_gradient
        def differentiable(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
            def gradient(upstream: tf.Tensor) -> tf.Tensor:
                # Without the dependency, TensorFlow keeps the factors of the forward pass.
                with tf.control_dependencies([upstream]):
                    return scaled(upstream)

            return scaled(x), gradient

        return differentiable(x)


@keras.saving.register_keras_serializable("bert_tf")
class Dropout(keras.layers.Layer):
    """Zeroes each element with probability `rate` in training and scales the rest up.

    Keras draws a float32 number for each element, which took a fifth of a training step on CPU.
    Here one 32-bit random integer decides two elements, so the rate is rounded to a multiple of
    2**-16 (0.1 becomes 0.10001). The scale is that of the rounded rate.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise UserError(f"a dropout rate must be in [0, 1), not {rate}")
        self.rate = rate
        self.seed = seed
        # At least one of the 2**16 values is kept.
        self._dropped = min(round(rate * 2**16), 2**16 - 1)
        if self._dropped:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Any shape -> the same shape; `x` itself unless `training`."""
        drawn = self.draw(tf.shape(x), training)
        return x if drawn is None else drawn.apply(x)

    def draw(self, shape: tf.Tensor, training: bool) -> Drawn | None:
        """The draw for a tensor of this shape, int32 [rank]; None if nothing is dropped."""
        if not training or not self._dropped:
            return None
        return Drawn(tf.reshape(self._words(tf.reduce_prod(shape)), shape), self._dropped)

    def _words(self, count: tf.Tensor) -> tf.Tensor:
        """uint16 [count], uniform."""
        seed = drawn_once(lambda: tf.cast(self.seed_generator.next(), tf.int32))
        replica = tf.distribute.get_replica_context()
        if replica is not None and replica.num_replicas_in_sync > 1:
            # Each replica has a copy of the generator, and all copies are in the same state.
            seed = tf.random.fold_in(seed, replica.replica_id_in_sync_group)
        words = tf.random.stateless_uniform(
            [(count + 1) // 2], seed, minval=None, maxval=None, dtype=tf.int32
        )
        return tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:count]

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"rate": self.rate, "seed": self.seed}


Shape = tuple[int | None, ...]
# The types of `_MklLayerNorm` and its epsilon; see `bert_tf.export.fused_norms`.
FUSED_TYPES = ("float32", "bfloat16")
FUSED_EPSILON = 1e-3


@keras.saving.register_keras_serializable("bert_tf")
class LayerNorm(keras.layers.Layer):
    """Normalizes each token over its hidden axis, then scales and shifts (Ba et al. 2016).

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
        """As `call`, in the dtype of x, in a form that TensorFlow's graph optimizer recognizes.

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
    if residual is not None:  # in float32, since a sum in bfloat16 has a quarter more error
        x += tf.cast(residual, tf.float32)
    # Forward and backward, this is a third faster than tf.nn.moments with
    # tf.nn.batch_normalization, which subtract the mean twice.
    centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
    return tf.cast(beta + centred * (tf.math.rsqrt(variance + epsilon) * gamma), dtype)


@functools.lru_cache
def _compiled(epsilon: float, dtype: str, dropped: int) -> Callable[..., tf.Tensor]:
    """(x, residual, gamma, beta), and words if there is dropout -> the normalized sum."""

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
