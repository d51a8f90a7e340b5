"""The closed-form gradients are those that TensorFlow derives."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder import activations
from bert_tf.errors import UserError


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("name", "approximate"), [("gelu", False), ("gelu_new", True)])
def test_gelu_and_its_gradient(name, approximate, training):
    x = tf.constant(np.linspace(-8, 8, 401), tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        ours = activations.by_name(name, training)(x)
        theirs = tf.nn.gelu(x, approximate=approximate)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-7)
    derived = tape.gradient(theirs, x)
    np.testing.assert_allclose(tape.gradient(ours, x), derived, rtol=0, atol=1e-7)


@pytest.mark.parametrize(("name", "approximate"), [("gelu", False), ("gelu_new", True)])
def test_in_training_the_error_of_bfloat16_is_that_of_rounding(name, approximate):
    x = tf.cast(tf.random.stateless_normal([10_000], [1, 2]), tf.bfloat16)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        exact = tf.cast(x, tf.float64)
        theirs = tf.nn.gelu(exact, approximate=approximate)
        ours = activations.by_name(name, training=True)(x)
    derived = tape.gradient(theirs, exact)
    for found, expected in ((ours, theirs), (tape.gradient(ours, x), derived)):
        found = tf.cast(found, tf.float64)
        np.testing.assert_allclose(found, expected, rtol=2**-8, atol=1e-6)


def test_an_unknown_activation_is_named():
    with pytest.raises(UserError, match="unknown activation 'relu'; choose gelu, gelu_new, tanh"):
        activations.by_name("relu")
