"""Under mixed precision the optimizers work in float32, on float32 weights and moments."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder.layers import Linear
from bert_tf.optimization import LAMB, AdamW

STEPS = 5


def trained(optimizer, policy: str, gradients: list[np.ndarray], gradient_dtype: str) -> list:
    """The weights and the optimizer's variables after a step for each gradient of the kernel."""
    keras.utils.set_random_seed(0)
    layer = Linear(3, initializer_range=1.0, dtype=policy)
    layer.build((None, 4))
    assert {weight.dtype for weight in layer.weights} == {"float32"}
    for kernel in gradients:
        both = [tf.cast(kernel, gradient_dtype), tf.cast(kernel[0], gradient_dtype)]
        optimizer.apply(both, layer.trainable_weights)
    moments = [v for v in optimizer.variables if v.shape.rank]
    assert len(moments) == 4
    assert {moment.dtype for moment in moments} == {"float32"}
    return [variable.numpy() for variable in (*layer.weights, *optimizer.variables)]


@pytest.mark.parametrize("make", [AdamW, LAMB])
@pytest.mark.parametrize("gradient_dtype", ["float32", "bfloat16"])
def test_a_step_is_the_one_of_float32_given_the_same_gradients(make, gradient_dtype):
    random = np.random.RandomState(0)
    # Numbers that bfloat16 can hold, with a norm far above that of clipping.
    gradients = [
        tf.cast(tf.cast(random.normal(size=(4, 3)), "bfloat16"), "float32").numpy()
        for _ in range(STEPS)
    ]
    exact = trained(make(0.01), "float32", gradients, "float32")
    mixed = trained(make(0.01), "mixed_bfloat16", gradients, gradient_dtype)
    for one, other in zip(exact, mixed, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", [AdamW, LAMB])
def test_weights_of_bfloat16_move_as_those_of_float32_do(make):
    gradient = np.array([0.5, -0.25, 1.0])
    moved = {}
    for dtype in ("float32", "bfloat16"):
        weight = keras.Variable(np.ones(3), dtype=dtype)
        make(0.1, clip_norm=None).apply([tf.cast(gradient, dtype)], [weight])
        moved[dtype] = tf.cast(weight.value, tf.float32)
    np.testing.assert_allclose(moved["bfloat16"], moved["float32"], rtol=0.02)
