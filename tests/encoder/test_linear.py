"""A linear layer and its gradients."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder.linear import Linear


@pytest.mark.parametrize(
    ("policy", "tolerance"),
    [
        ("float32", 1e-5),
        pytest.param("mixed_bfloat16", 2**-7, marks=pytest.mark.bfloat16),
    ],
)
def test_the_gradient_of_the_bias_is_the_exact_sum_rounded_once(policy, tolerance):
    layer = Linear(8, dtype=policy)
    layer.build((None, 4))
    random = np.random.default_rng(0)
    dtype = layer.compute_dtype
    tokens = tf.cast(random.normal(size=(2048, 4)), dtype)
    upstream = tf.cast(random.normal(1.0, 1.0, (2048, 8)), dtype)
    with tf.GradientTape() as tape:
        result = layer(tokens)
    found = tape.gradient(result, layer.bias.value, upstream)
    expected = tf.cast(upstream, tf.float64).numpy().sum(axis=0)
    np.testing.assert_allclose(tf.cast(found, tf.float64), expected, rtol=tolerance)
