"""Layer normalization in float32, of sums that are made in float32."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder.layer_norm import LayerNorm


def layer(dtype: str, epsilon: float = 1e-12) -> LayerNorm:
    norm = LayerNorm(epsilon, dtype=dtype)
    norm.build((None, 8))
    random = np.random.RandomState(0)
    for weight in norm.weights:
        weight.assign(random.normal(size=8))
    return norm


def expected(norm: LayerNorm, x: np.ndarray) -> np.ndarray:
    """In float64."""
    gamma, beta = norm.get_weights()
    variance = x.var(-1, keepdims=True)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(variance + norm.epsilon) * gamma + beta


@pytest.mark.parametrize("epsilon", [1e-12, 0.5])
@pytest.mark.parametrize("with_residual", [False, True])
def test_each_token_has_its_own_mean_and_variance(epsilon, with_residual):
    norm = layer("float32", epsilon)
    x, residual = np.random.RandomState(1).normal(3.0, 2.0, (2, 5, 8)).astype("float32")
    found = norm(tf.constant(x), tf.constant(residual)) if with_residual else norm(tf.constant(x))
    total = np.float64(x) + residual if with_residual else np.float64(x)
    np.testing.assert_allclose(found, expected(norm, total), rtol=0, atol=5e-6)


def test_in_mixed_precision_only_the_result_is_rounded():
    norm = layer("mixed_bfloat16")
    # Sums of which bfloat16 would keep only the large part.
    large = tf.cast(np.full((5, 8), 64.0), tf.bfloat16)
    small = tf.cast(np.random.RandomState(1).normal(size=(5, 8)) / 16, tf.bfloat16)
    found = norm(small, large)
    exact = expected(norm, np.float64(tf.cast(small, tf.float32)) + 64.0)
    assert found.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(found, tf.float32), exact, rtol=2**-8, atol=1e-4)

    plain = np.random.RandomState(2).normal(64.0, 0.1, (5, 8)).astype("float32")
    exact = expected(norm, np.float64(plain))
    found = tf.cast(norm(tf.constant(plain)), tf.float32)
    np.testing.assert_allclose(found, exact, rtol=2**-8, atol=1e-3)


def test_it_comes_back_from_its_configuration():
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(LayerNorm(0.5, dtype="mixed_bfloat16"))
    )
    assert again.get_config()["epsilon"] == 0.5
    assert again.compute_dtype == "bfloat16"
