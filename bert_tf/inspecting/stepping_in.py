"""Standing in for a layer while a model runs, so that models need no entrances for inspection."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras

from bert_tf.models import Encoder


@contextlib.contextmanager
def called_instead(layer: keras.layers.Layer, call: Callable[..., Any]) -> Iterator[None]:
    """Until the end, `layer` does what `call` does with the same arguments.

    For calls outside of graphs: what a model has traced before goes on as it was traced.
    """
    layer.call = call
    try:
        yield
    finally:
        # What shows again is the method of the class.
        del layer.call


def towers(encoder: Encoder) -> dict[str, Encoder]:
    """The encoders whose layers run: one, or two where both directions are read side by side.

    The keys distinguish them in names.
    """
    if encoder.right_to_left is None:
        return {"": encoder}
    return {" left to right": encoder, " right to left": encoder.right_to_left}
