"""Which layers training leaves as they are, so that a saved model brings it back."""

from collections.abc import Iterable

import keras

from bert_tf.compat import layers_below


def frozen_layers(layer: keras.Layer) -> list[str]:
    """The layers below `layer` that are not trainable, by their names: "encoder/layer_0/output".

    What is below such a one is not named.
    """
    paths = []
    for each in _below(layer):
        if not each.trainable:
            paths.append(each.name)
        else:
            paths += [f"{each.name}/{path}" for path in frozen_layers(each)]
    return paths


def freeze(layer: keras.Layer, paths: Iterable[str]) -> None:
    """Makes the layers below `layer` of these names not trainable."""
    for path in paths:
        found = layer
        for name in path.split("/"):
            found = next(each for each in _below(found) if each.name == name)
        found.trainable = False


def _below(layer: keras.Layer) -> list[keras.Layer]:
    """The layers directly below that have weights; the names of others change."""
    return [each for each in layers_below(layer, recursive=False) if each.weights]
