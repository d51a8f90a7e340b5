"""What a training leaves in the process after it."""

import gc
import weakref

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops

from bert_tf.encoder.activations import gelu
from bert_tf.training.custom_gradients import gradients_forgotten


def slope() -> tf.types.experimental.GenericFunction:
    """The derivative of GELU, in a graph that is not traced yet."""

    @tf.function
    def of(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = gelu(x)
        return tape.gradient(y, x)

    return of


def test_graphs_that_were_trained_are_let_go():
    before = set(ops.gradient_registry._registry)
    with gradients_forgotten():
        of = slope()
        concrete = of.get_concrete_function(tf.TensorSpec([None], tf.float32))
        graph = weakref.ref(concrete.graph)
        assert set(ops.gradient_registry._registry) > before

    assert set(ops.gradient_registry._registry) == before
    del of, concrete
    gc.collect()
    assert graph() is None


def test_what_was_traced_before_keeps_its_gradients():
    @tf.function
    def activated(x):
        return gelu(x)

    x = tf.constant([0.0, 1.0])
    activated(x)
    with gradients_forgotten():
        slope()(x)

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = activated(x)
    # 1/2, and Phi(1) + phi(1).
    np.testing.assert_allclose(tape.gradient(y, x), [0.5, 1.0833155], rtol=1e-5)


def test_gradients_of_others_stay():
    @tf.custom_gradient
    def doubled(x):
        return 2 * x, lambda upstream: 3 * upstream

    with gradients_forgotten():
        activated = tf.function(lambda x: gelu(doubled(x)))
        theirs = tf.function(lambda x: doubled(x))
        x = tf.constant([0.0, 1.0])
        activated(x)
        theirs(x)

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = theirs(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [3, 3])
