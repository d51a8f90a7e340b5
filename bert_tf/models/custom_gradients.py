"""What `tf.custom_gradient` leaves behind in a process that traces one training after the other."""

import contextlib
from collections.abc import Iterator

from bert_tf.compat import registered_gradients

# What its gradients are called, with a number each.
_PREFIX = "CustomGradient-"


@contextlib.contextmanager
def gradients_forgotten() -> Iterator[None]:
    """Forgets the gradients that are registered inside, with the graphs that they hold.

    In a graph each call of what `tf.custom_gradient` decorates registers its gradient under a name
    of its own and for ever (tensorflow/python/ops/custom_gradient.py, `_graph_mode_decorator`).
    The gradient holds tensors, those hold their graph, and a training step's graph holds the model:
    each of several trainings would leave its weights and their moments in memory. Afterwards no
    further gradient can be taken of what was traced inside.
    """
    registered = registered_gradients()
    before = set(registered)
    try:
        yield
    finally:
        for name in registered.keys() - before:
            if name.startswith(_PREFIX):
                del registered[name]
