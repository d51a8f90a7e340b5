"""Element-wise work of a training step, compiled by XLA: one loop forward and one backward.

TensorFlow reads and writes a whole tensor for each of the many operations between two matrix
products. XLA makes one loop of them. It compiles the loop again for each new shape, in 50 to 200
ms; the layouts round the number of tokens, so that new shapes soon become rare.

Matrix products stay outside: oneDNN's are faster than XLA's on CPU.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from bert_tf.compat import custom_gradient
from bert_tf.console import without_native_messages

# The smallest width of tensors for which a loop saves more time than its compilation takes.
_NARROWEST = 256


def is_worthwhile(width: int) -> bool:
    """Whether `compiled` functions save time for tensors [tokens, width]."""
    # On a GPU, compilation for a new shape takes seconds. Models of static shapes are compiled as a
    # whole there, as on a TPU.
    devices = {device.device_type for device in tf.config.list_logical_devices()}
    return width >= _NARROWEST and devices == {"CPU"} and _can_compile()


@functools.cache
def _can_compile() -> bool:
    is_quiet = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") != "0"
    with tf.init_scope(), without_native_messages() if is_quiet else contextlib.nullcontext():
        try:
            tf.function(tf.negative, jit_compile=True)(tf.zeros([1]))
        except tf.errors.OpError:
            return False
    return True


def compiled(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """`function` as one loop, and its gradient as another, which keeps only the arguments.

    The result takes tensors and returns one. Layers must share it: XLA compiles each separately.
    """
    forward = tf.function(function, jit_compile=True, autograph=False)

    @tf.function(jit_compile=True, autograph=False)
    def backward(arguments: Sequence[tf.Tensor], upstream: tf.Tensor) -> Any:
        differentiable = [each for each in arguments if each.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(differentiable)
            result = function(*arguments)
        gradients = iter(tape.gradient(result, differentiable, upstream))
        return [next(gradients) if each.dtype.is_floating else None for each in arguments]

    @custom_gradient
    def call(*arguments: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        return forward(*arguments), lambda upstream: backward(arguments, upstream)

    return call
