"""LAMB does what algorithm 2 of You et al. (2020) says, step for step."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization import LAMB


def published(weight, gradients, rate, decay, adapted):
    """Algorithm 2 in NumPy and float64, with phi the identity; the weight after each step."""
    m = v = 0.0
    history = []
    for step, gradient in enumerate(gradients, start=1):
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        update = (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-6)
        update = update + decay * weight
        ratio = np.linalg.norm(weight) / np.linalg.norm(update) if adapted else 1.0
        weight = weight - rate * ratio * update
        history.append(weight)
    return history


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("decay", [0.02, 0.0])
def test_a_hundred_steps_follow_the_published_formula(decay, eager):
    random = np.random.RandomState(0)
    start = {"dense/kernel": random.normal(size=(4, 3)), "dense/bias": random.normal(size=3)}
    gradients = {name: random.normal(size=(100, *w.shape)) for name, w in start.items()}
    variables = [keras.Variable(value, dtype="float64") for value in start.values()]
    for variable, name in zip(variables, start, strict=True):
        variable._path = name
    optimizer = LAMB(0.01, weight_decay=decay, clip_norm=None)
    expected = {
        name: published(
            value,
            gradients[name],
            rate=np.float32(0.01),  # Keras keeps a constant rate in float32
            decay=decay if name == "dense/kernel" else 0.0,
            adapted=name == "dense/kernel",
        )
        for name, value in start.items()
    }
    optimizer.build(variables)
    apply = optimizer.apply if eager else tf.function(optimizer.apply)
    for step in range(100):
        apply([tf.constant(gradients[name][step]) for name in start])
        for variable, name in zip(variables, start, strict=True):
            np.testing.assert_allclose(variable.numpy(), expected[name][step], rtol=0, atol=1e-12)


def test_a_weight_of_zeros_still_moves():
    variable = keras.Variable(np.zeros(3, "float32"))
    variable._path = "dense/kernel"
    LAMB(0.1).apply([tf.ones(3)], [variable])
    assert np.all(variable.numpy() < 0)
