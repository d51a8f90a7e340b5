"""Blocks that keep their input alone for the gradient, and compute the rest again.

Gradient checkpointing (Chen et al. 2016, arXiv 1604.06174). A step takes about a third longer, and
the intermediates of one block take the place of those of all blocks. Keras's `RematScope` would
draw other dropout the second time.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator

import tensorflow as tf

# The seeds of the block that is being computed, in the order in which its dropouts draw.
_seeds: contextvars.ContextVar["_Seeds | None"] = contextvars.ContextVar("seeds", default=None)


def rematerialized(block: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """`block`, which computes its intermediates again for the gradient, with the same dropout.

    Args:
        block: takes tensors and returns one. Gradients reach its arguments and its variables. Its
            dropouts take their seeds from `drawn_once`.
    """
    seeds = _Seeds()

    def computed(*arguments: tf.Tensor) -> tf.Tensor:
        with seeds.again():
            return block(*arguments)

    return tf.recompute_grad(computed)


def drawn_once(draw: Callable[[], tf.Tensor]) -> tf.Tensor:
    """What `draw` gives; in a block that is computed again, what it gave before."""
    seeds = _seeds.get()
    return draw() if seeds is None else seeds.next(draw)


class _Seeds:
    """What the dropouts of a block have drawn."""

    def __init__(self) -> None:
        self._drawn: list[tf.Tensor] = []

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Computes the block, from its first draw on."""
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
