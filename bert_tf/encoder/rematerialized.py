"""Blocks that keep only their input for the gradient, and compute the rest again.

Gradient checkpointing (Chen et al. 2016, arXiv 1604.06174). A step takes about a third longer, and
memory holds the intermediates of one block instead of those of all blocks. Keras's `RematScope`
would draw other dropout the second time.
"""

import contextvars
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from bert_tf.compat import custom_gradient, stop_recording

# How the dropouts of the block that is being computed draw their seeds.
_draw: contextvars.ContextVar[Callable[[Callable[[], tf.Tensor]], tf.Tensor]]
_draw = contextvars.ContextVar("draw", default=lambda draw: draw())


def rematerialized(block: Callable[..., Any]) -> Callable[..., tuple[tf.Tensor, dict]]:
    """A block that computes its intermediates again for the gradient, with the same dropout."""

    def call(tokens: tf.Tensor, bias: tf.Tensor, **options: Any) -> tuple[tf.Tensor, dict]:
        drawn: list[tf.Tensor] = []

        def compute(tokens: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
            before = _draw.set(_in_order(drawn))
            try:
                return block(tokens, bias=bias, **options)[0]
            finally:
                _draw.reset(before)

        return _computed_again(compute)(tokens, bias), {}

    return call


def _computed_again(compute: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """As `tf.recompute_grad`, whose own gradient would stay in the process (`custom_gradient`)."""

    @custom_gradient
    def call(*given: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        def gradient(upstream: tf.Tensor, variables: Sequence[tf.Variable] = ()) -> Any:
            # XLA knows no control dependencies: adding this 0 makes the work wait for `upstream`.
            first = tf.cast(tf.reduce_max(tf.reshape(upstream, [-1])[:1]), tf.bool)
            zero = tf.where(first == first, 0.0, float("nan"))
            inputs = [each + tf.cast(zero, each.dtype) for each in given]
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                result = compute(*inputs)
            sources = [*inputs, *variables]
            found = tape.gradient(result, sources, upstream, tf.UnconnectedGradients.ZERO)
            count = len(inputs)
            return (found[:count], found[count:]) if variables else found

        with stop_recording():
            return compute(*given), gradient

    return call


def drawn_once(draw: Callable[[], tf.Tensor]) -> tf.Tensor:
    """What `draw` gives; in a block that is computed again, what it gave the first time."""
    return _draw.get()(draw)


def _in_order(drawn: list[tf.Tensor]) -> Callable[[Callable[[], tf.Tensor]], tf.Tensor]:
    """Gives one draw after the other, and makes those that are not among the `drawn` yet."""
    places = itertools.count()

    def next_draw(draw: Callable[[], tf.Tensor]) -> tf.Tensor:
        place = next(places)
        if place == len(drawn):
            drawn.append(draw())
        return drawn[place]

    return next_draw
