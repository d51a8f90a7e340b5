"""`cross_entropy` compared with TensorFlow's own."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.models.logits import cross_entropy

ITS_OWN = tf.nn.sparse_softmax_cross_entropy_with_logits


def losses_and_gradient(function, labels, logits, weights):
    """What a loss gives for each label, and the gradient of their weighted sum."""
    logits = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        losses = function(labels, logits)
        total = tf.reduce_sum(weights * losses)
    return losses.numpy(), tape.gradient(total, logits).numpy()


@pytest.mark.parametrize("shape", [(5,), (3, 4), (0, 4), (2, 3, 2)])
@pytest.mark.parametrize("scale", [1.0, 1e4], ids=["usual", "far apart"])
@pytest.mark.parametrize("compiled", [False, True], ids=["graph", "xla"])
def test_losses_and_gradients_are_those_of_tensorflow(shape, scale, compiled):
    random = np.random.default_rng(0)
    labels = random.integers(0, 11, shape, np.int32)
    logits = (scale * random.normal(size=(*shape, 11))).astype(np.float32)
    weights = random.uniform(size=shape).astype(np.float32)
    ours = tf.function(cross_entropy, jit_compile=compiled)
    found = losses_and_gradient(ours, labels, logits, weights)
    expected = losses_and_gradient(ITS_OWN, labels, logits, weights)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


def test_a_class_that_is_ruled_out_gets_no_gradient():
    logits = np.array([[0.5, -np.inf, 1.0], [0.5, -1e9, 1.0]], np.float32)
    losses, gradient = losses_and_gradient(cross_entropy, [0, 2], logits, [1.0, 1.0])
    np.testing.assert_allclose(losses, [0.974077, 0.474077], rtol=1e-6)
    np.testing.assert_array_equal(gradient[:, 1], 0.0)


def test_nan_logits_give_nan_losses():
    """Training relies on them to notice that it has diverged."""
    losses, _ = losses_and_gradient(cross_entropy, [0], [[np.nan, 1.0]], [1.0])
    assert np.isnan(losses).all()
