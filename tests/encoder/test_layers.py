"""The layers that blocks are made of, one by one, and the configurations of all layers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder.attention import SelfAttention
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Embeddings, TransformerBlock
from bert_tf.encoder.layers import Dropout, LayerNorm, Linear
from bert_tf.errors import UserError
from bert_tf.models.pretrainer import MaskedLMHead
from tests import tiny

SIZES = tiny.encoder_config(hidden_dropout_prob=0.2, layer_norm_eps=1e-9)
LAYERS = {
    "attention": lambda **options: SelfAttention(2, 0.2, 0.05, **options),
    "block": lambda **options: TransformerBlock(SIZES, 3, **options),
    "dropout": lambda **options: Dropout(0.3, seed=5, **options),
    "embeddings": lambda **options: Embeddings(SIZES, **options),
    "head": lambda **options: MaskedLMHead("gelu", 0.05, 1e-9, **options),
    "layer_norm": lambda **options: LayerNorm(0.5, **options),
    "linear": lambda **options: Linear(3, "gelu_new", 0.05, **options),
}


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS.keys())
def test_layers_come_back_from_their_configuration(make, dtype):
    layer = make(name="it", dtype=dtype)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is type(layer)
    assert again.get_config() == layer.get_config()
    assert again.dtype_policy == layer.dtype_policy
    plain = int | float | str | EncoderConfig
    ours, theirs = (
        {name: value for name, value in vars(each).items() if isinstance(value, plain)}
        for each in (layer, again)
    )
    assert theirs == ours


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


def layer_norm(dtype: str, epsilon: float = 1e-12) -> LayerNorm:
    norm = LayerNorm(epsilon, dtype=dtype)
    norm.build((None, 8))
    random = np.random.RandomState(0)
    for weight in norm.weights:
        weight.assign(random.normal(size=8))
    return norm


def normalized(norm: LayerNorm, x: np.ndarray) -> np.ndarray:
    """In float64."""
    gamma, beta = norm.get_weights()
    variance = x.var(-1, keepdims=True)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(variance + norm.epsilon) * gamma + beta


@pytest.mark.parametrize("epsilon", [1e-12, 0.5])
@pytest.mark.parametrize("with_residual", [False, True])
def test_each_token_has_its_own_mean_and_variance(epsilon, with_residual):
    norm = layer_norm("float32", epsilon)
    x, residual = np.random.RandomState(1).normal(3.0, 2.0, (2, 5, 8)).astype("float32")
    found = norm(tf.constant(x), tf.constant(residual)) if with_residual else norm(tf.constant(x))
    total = np.float64(x) + residual if with_residual else np.float64(x)
    np.testing.assert_allclose(found, normalized(norm, total), rtol=0, atol=5e-6)


def test_in_mixed_precision_only_the_result_is_rounded():
    norm = layer_norm("mixed_bfloat16")
    # Sums of which bfloat16 would keep only the large part.
    large = tf.cast(np.full((5, 8), 64.0), tf.bfloat16)
    small = tf.cast(np.random.RandomState(1).normal(size=(5, 8)) / 16, tf.bfloat16)
    found = norm(small, large)
    exact = normalized(norm, np.float64(tf.cast(small, tf.float32)) + 64.0)
    assert found.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(found, tf.float32), exact, rtol=2**-8, atol=1e-4)

    plain = np.random.RandomState(2).normal(64.0, 0.1, (5, 8)).astype("float32")
    exact = normalized(norm, np.float64(plain))
    found = tf.cast(norm(tf.constant(plain)), tf.float32)
    np.testing.assert_allclose(found, exact, rtol=2**-8, atol=1e-3)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_share_of_zeros_is_the_rate_and_the_mean_stays(rate):
    kept = Dropout(rate, seed=1)(tf.ones([200, 501]), training=True).numpy()
    assert (kept == 0).mean() == pytest.approx(rate, abs=0.005)
    assert kept.mean() == pytest.approx(1.0, abs=0.01)
    assert set(np.unique(kept)) == {0.0, np.float32(kept.max())}


def test_every_call_draws_a_new_mask_and_a_seed_fixes_their_order():
    one, two = Dropout(0.5, seed=3), Dropout(0.5, seed=3)
    x = tf.ones([64])
    first, second = one(x, training=True), one(x, training=True)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, two(x, training=True))
    np.testing.assert_array_equal(second, two(x, training=True))


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_impossible_rates_are_refused(rate):
    with pytest.raises(UserError, match=r"must be in \[0, 1\)"):
        Dropout(rate)


def test_a_rate_next_to_one_still_keeps_something():
    assert float(tf.reduce_max(Dropout(0.999995)(tf.ones([2**20]), training=True))) == 2**16


def test_nothing_is_dropped_outside_training_or_at_rate_zero():
    x = tf.ones([100])
    np.testing.assert_array_equal(Dropout(0.5)(x), x)
    np.testing.assert_array_equal(Dropout(0.0)(x, training=True), x)
