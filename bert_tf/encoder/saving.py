"""The description of models in files: which layers are frozen, and which factories made them."""

from collections.abc import Iterable
from typing import Any

import keras

from bert_tf.compat import layers_below
from bert_tf.errors import UserError


def frozen_layers(layer: keras.Layer) -> list[str]:
    """The uppermost layers below `layer` that are not trainable, as "encoder/layer_0/output"."""
    paths = []
    for each in _below(layer):
        if not each.trainable:
            paths.append(each.name)
        else:
            paths += [f"{each.name}/{path}" for path in frozen_layers(each)]
    return paths


def freeze(layer: keras.Layer, paths: Iterable[str]) -> None:
    """Makes the layers that `frozen_layers` has listed not trainable."""
    for path in paths:
        found = layer
        for name in path.split("/"):
            found = next(each for each in _below(found) if each.name == name)
        found.trainable = False


def _below(layer: keras.Layer) -> list[keras.Layer]:
    """The layers directly below that have weights; the names of layers without weights change."""
    return [each for each in layers_below(layer, recursive=False) if each.weights]


def registered_name(factory: Any) -> str:
    """The name under which a class or function that makes layers is registered with Keras."""
    name = keras.saving.get_registered_name(factory)
    if keras.saving.get_registered_object(name) is not factory:
        raise UserError(
            f"an encoder with layers from {factory.__name__} cannot be saved yet; register "
            f"{factory.__name__} with keras.saving.register_keras_serializable"
        )
    return name


def registered(name: str, custom_objects: Any = None) -> Any:
    """The object that is registered with Keras under a name, or listed in `custom_objects`."""
    factory = keras.saving.get_registered_object(name, custom_objects)
    if factory is None:
        raise UserError(
            f"{name}, which creates layers of the encoder, is not registered; import its module "
            "before loading"
        )
    return factory
