"""The closed-form gradients are those that TensorFlow derives."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder import activations
from bert_tf.errors import UserError


@pytest.mark.parametrize(
    ("dtype", "training", "tolerance"),
    [
        (tf.float64, False, {"rtol": 0, "atol": 1e-7}),
        (tf.float64, True, {"rtol": 0, "atol": 1e-7}),
        # In training, the error is that of one rounding.
        (tf.bfloat16, True, {"rtol": 2**-8, "atol": 1e-6}),
    ],
)
@pytest.mark.parametrize(("name", "approximate"), [("gelu", False), ("gelu_new", True)])
def test_gelu_and_its_gradient(name, approximate, dtype, training, tolerance):
    normal = tf.random.stateless_normal([10_000], [1, 2])
    x = tf.cast(normal if dtype == tf.bfloat16 else np.linspace(-8, 8, 401), dtype)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        exact = tf.cast(x, tf.float64)
        ours = activations.by_name(name, training)(x)
        theirs = tf.nn.gelu(exact, approximate=approximate)
    derived = tape.gradient(theirs, exact)
    for found, expected in ((ours, theirs), (tape.gradient(ours, x), derived)):
        np.testing.assert_allclose(tf.cast(found, tf.float64), expected, **tolerance)


def test_an_unknown_activation_is_named():
    with pytest.raises(UserError, match="unknown activation 'swish'; choose gelu, gelu_new, tanh"):
        activations.by_name("swish")
