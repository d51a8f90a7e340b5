"""Blocks that keep only their input for the gradient, and compute the rest again.

Gradient checkpointing (Chen et al. 2016, arXiv 1604.06174). A step takes about a third longer, and
memory holds the intermediates of one block instead of those of all blocks. Keras's `RematScope`
would draw other dropout the second time.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from bert_tf.compat import custom_gradient, stop_recording

# The seeds of the block that is being computed, in the order in which its dropouts draw.
_seeds: contextvars.ContextVar["_Seeds | None"] = contextvars.ContextVar("seeds", default=None)


def rematerialized(block: Callable[..., Any]) -> Callable[..., tuple[tf.Tensor, dict]]:
    """A block that computes its intermediates again for the gradient, with the same dropout."""

    def call(tokens: tf.Tensor, bias: tf.Tensor, **options: Any) -> tuple[tf.Tensor, dict]:
        seeds = _Seeds()

        def compute(tokens: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
            with seeds.again():
                return block(tokens, bias=bias, **options)[0]

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
    """The result of `draw`; when a block is computed again, the result of the first time."""
    seeds = _seeds.get()
    return draw() if seeds is None else seeds.next(draw)


class _Seeds:
    """The seeds that the dropouts of a block have drawn."""

    def __init__(self) -> None:
        self._drawn: list[tf.Tensor] = []

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """A context in which the block is computed; its draws begin with the first one."""
        self._place = 0
        token = _seeds.set(self)
        try:
            yield
        finally:
            _seeds.reset(token)

    def next(self, draw: Callable[[], tf.Tensor]) -> tf.Tensor:
        """The next draw."""
        if self._place == len(self._drawn):
            self._drawn.append(draw())
        self._place += 1
        return self._drawn[self._place - 1]
