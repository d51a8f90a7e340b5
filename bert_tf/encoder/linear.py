"""A dense layer on flat tokens, written so that its three operations fuse into one kernel."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from bert_tf.compat import custom_gradient
from bert_tf.encoder import activations


@keras.saving.register_keras_serializable("bert_tf")
class Linear(keras.layers.Layer):
    """activation(x @ kernel + bias) for x [tokens, input_size].

    TensorFlow's CPU graph optimizer fuses MatMul, BiasAdd and GELU only if they follow each other
    on a matrix. Keras's `Dense` adds its bias with a general addition after a reshape.
    """

    # Gives what an adapter adds to x @ kernel (`bert_tf.training.adapter`), from x and `training`.
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
