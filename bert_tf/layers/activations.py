"""GELU in BERT's two forms, each with its closed-form gradient.

The forward pass is TensorFlow's own expression, which the graph optimizer fuses with the matrix
product and bias before it. The gradient is written out because differentiating the expression
would keep five intermediate tensors per layer and make a dozen passes over them.
"""

import math
from collections.abc import Callable

import tensorflow as tf


@tf.custom_gradient
def gelu(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """x * Phi(x), with the normal distribution function Phi by erf (Hendrycks & Gimpel 2016)."""

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        distribution = 0.5 * (1.0 + tf.math.erf(x * math.sqrt(0.5)))
        density = tf.exp(-0.5 * tf.square(x)) * (1.0 / math.sqrt(2.0 * math.pi))
        return upstream * (distribution + x * density)

    return tf.nn.gelu(x, approximate=False), gradient


@tf.custom_gradient
def gelu_new(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """The tanh approximation of GELU, the one in google-research/bert `modeling.py`."""

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        scale, cubic = math.sqrt(2.0 / math.pi), 0.044715
        square = tf.square(x)
        tanh = tf.tanh(scale * x * (1.0 + cubic * square))
        inner = scale * (1.0 + 3.0 * cubic * square)
        return upstream * 0.5 * (1.0 + tanh + x * (1.0 - tf.square(tanh)) * inner)

    return tf.nn.gelu(x, approximate=True), gradient


def by_name(name: str | None) -> Callable[[tf.Tensor], tf.Tensor]:
    """The function that `hidden_act` names; None is the identity."""
    return {None: tf.identity, "gelu": gelu, "gelu_new": gelu_new, "tanh": tf.tanh}[name]
