"""The closed-form gradients are those that TensorFlow derives."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.layers import activations


@pytest.mark.parametrize(("name", "approximate"), [("gelu", False), ("gelu_new", True)])
def test_gelu_and_its_gradient(name, approximate):
    x = tf.constant(np.linspace(-8, 8, 401), tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        ours = activations.by_name(name)(x)
        theirs = tf.nn.gelu(x, approximate=approximate)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-7)
    derived = tape.gradient(theirs, x)
    np.testing.assert_allclose(tape.gradient(ours, x), derived, rtol=0, atol=1e-7)
