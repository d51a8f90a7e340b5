"""Removes what `tf.custom_gradient` leaves behind in a process that traces several models."""

import contextlib
import types
from collections.abc import Iterator

from bert_tf.compat import registered_gradients

# The names of such gradients begin with this, and end with a number.
_PREFIX = "CustomGradient-"
_PACKAGE = __name__.partition(".")[0]


@contextlib.contextmanager
def gradients_forgotten() -> Iterator[None]:
    """On exit, removes our gradients that were registered inside, and so the graphs that they hold.

    In a graph, each call of a function that `tf.custom_gradient` decorates registers its gradient
    under a new name, for ever (tensorflow/python/ops/custom_gradient.py, `_graph_mode_decorator`).
    The gradient holds tensors, these hold their graph, and a training step's graph holds the model:
    each training would leave its weights and their moments in memory. After the exit, functions
    that were traced inside have no gradient any more. Gradients of other packages stay.
    """
    registered = registered_gradients()
    before = set(registered)
    try:
        yield
    finally:
        for name in registered.keys() - before:
            if name.startswith(_PREFIX) and _is_ours(registered[name]["type"]):
                del registered[name]


def _is_ours(gradient: types.FunctionType) -> bool:
    """Whether a function, or one that it calls, was defined in this package.

    TensorFlow wraps the decorated gradient into functions of its own.
    """
    functions, seen = [gradient], set()
    while functions:
        function = functions.pop()
        if function.__module__.partition(".")[0] == _PACKAGE:
            return True
        seen.add(id(function))
        cells = (_content(cell) for cell in function.__closure__ or ())
        functions += [
            each for each in cells if isinstance(each, types.FunctionType) and id(each) not in seen
        ]
    return False


def _content(cell: types.CellType) -> object:
    """What a cell holds; None where it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
