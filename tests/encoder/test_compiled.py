"""Compiled pieces of a training step compute what TensorFlow's operations compute."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import Encoder
from bert_tf.compat import layers_below
from bert_tf.encoder import activations, compiled
from bert_tf.encoder.layers import Drawn, Dropout, LayerNorm
from tests import tiny

WIDTH = 256
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
# The rounding of a result, relative to it, and of what it is the sum of.
TOLERANCES = {"float32": {"rtol": 1e-5, "atol": 1e-5}, "bfloat16": {"rtol": 2**-7, "atol": 0.02}}


def random(dtype: str, seed: int) -> tf.Tensor:
    return tf.cast(tf.random.stateless_normal([20, WIDTH], [seed, 0]), dtype)


def both(monkeypatch, function, *arguments):
    """What a function gives, and its gradients, compiled and by plain operations."""
    upstream = random(arguments[0].dtype.name, 9)
    found = []
    for narrowest in (WIDTH, WIDTH + 1):
        monkeypatch.setattr(compiled, "_NARROWEST", narrowest)
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            result = function(*arguments)
        found.append([result, *tape.gradient(result, arguments, upstream)])
    return found


def assert_close(found, expected, dtype):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        one, other = (tf.cast(each, tf.float32).numpy() for each in (one, other))
        np.testing.assert_allclose(one, other, **TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", POLICIES)
@pytest.mark.parametrize("name", ["gelu", "gelu_new"])
def test_gelu_and_its_gradient(monkeypatch, name, dtype):
    activate = activations.by_name(name, training=True)
    assert_close(*both(monkeypatch, activate, random(dtype, 1)), dtype)


@pytest.mark.parametrize("dtype", POLICIES)
@pytest.mark.parametrize("dropped", [None, 2**14])
def test_dropout_sum_and_layer_norm_and_their_gradients(monkeypatch, dropped, dtype):
    norm = LayerNorm(1e-12, dtype=POLICIES[dtype])
    norm.build((None, WIDTH))
    for seed, weight in enumerate(norm.weights):
        weight.assign(tf.random.stateless_normal([WIDTH], [seed, 1]))
    words = tf.random.stateless_uniform([20, WIDTH], [1, 2], 0, 2**16, tf.int32)
    drawn = None if dropped is None else Drawn(tf.cast(words, tf.uint16), dropped)

    def function(x, residual, *_):
        return norm(x, residual, drawn=drawn, training=True)

    arguments = random(dtype, 1), random(dtype, 2)
    assert_close(*both(monkeypatch, function, *arguments), dtype)


def test_a_compiled_encoder_has_the_gradients_of_a_plain_one(monkeypatch):
    sizes = {"num_attention_heads": 4, "intermediate_size": WIDTH, "initializer_range": 0.2}
    encoder = Encoder(tiny.encoder_config(WIDTH, **sizes))
    ids = tf.constant([[2, 5, 6, 3], [2, 7, 3, 0]])
    inputs = {"input_word_ids": ids, "input_mask": tf.sign(ids), "input_type_ids": ids * 0}
    dropouts = [layer for layer in layers_below(encoder) if isinstance(layer, Dropout)]
    states = [layer.seed_generator.state for layer in dropouts]
    begun = [state.numpy() for state in states]
    weights = [weight.value for weight in encoder.trainable_weights]
    found = []
    for narrowest in (WIDTH, WIDTH + 1):
        monkeypatch.setattr(compiled, "_NARROWEST", narrowest)
        for state, value in zip(states, begun, strict=True):
            state.assign(value)

        @tf.function
        def gradients():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(encoder(inputs, training=True)["pooled_output"] ** 3)
            return [tf.convert_to_tensor(each) for each in tape.gradient(loss, weights)]

        found.append(gradients())
    for one, other in zip(*found, strict=True):
        scale = float(tf.reduce_max(tf.abs(other))) + 1e-6
        np.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=1e-4)


def test_narrow_tensors_and_other_devices_are_left_to_plain_operations(monkeypatch):
    assert not compiled.is_worthwhile(255)
    assert compiled.is_worthwhile(256)
    gpu = tf.config.LogicalDevice("/device:GPU:0", "GPU")
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: [gpu])
    assert not compiled.is_worthwhile(256)


def test_a_tensorflow_without_xla_trains_by_plain_operations(monkeypatch):
    def without_xla(function, **options):
        def fails(*arguments):
            raise tf.errors.InvalidArgumentError(None, None, "no XLA")

        return fails

    compiled._can_compile.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(tf, "function", without_xla)
        assert not compiled.is_worthwhile(256)
    compiled._can_compile.cache_clear()
