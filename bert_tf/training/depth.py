"""Layers that learn more slowly the deeper they lie, or not at all."""

import keras

from bert_tf.config import FinetuningTrain
from bert_tf.errors import UserError
from bert_tf.models import Encoder


def check(blocks: int, settings: FinetuningTrain) -> None:
    """Raises a UserError if `train.frozen_layers` is more than there are blocks."""
    if (settings.frozen_layers or 0) > blocks:
        raise UserError(
            f"train.frozen_layers {settings.frozen_layers} is more than the model's {blocks} "
            "layers; lower it"
        )


def freeze(encoder: Encoder, settings: FinetuningTrain) -> None:
    """Keeps the embeddings and the first `train.frozen_layers` blocks as they are.

    Comes before `compile`.

    Raises:
        UserError: there are fewer blocks.
    """
    frozen = settings.frozen_layers
    if frozen is None:
        return
    check(len(encoder.blocks), settings)
    for each in _ways(encoder).values():
        layers: list[keras.layers.Layer] = [each.embeddings, *each.blocks[:frozen]]
        for layer in layers:
            layer.trainable = False


def rate_factors(encoder: Encoder, settings: FinetuningTrain) -> dict[str, float]:
    """What the learning rate of each layer is multiplied by, for `BertOptimizer`.

    What stands above the blocks learns at the full rate, the last block at `train.layer_decay`
    times that, the block below it at the square, and so on down to the embeddings.
    """
    if settings.layer_decay == 1:
        return {}
    factors = {}
    for path, each in _ways(encoder).items():
        layers: list[keras.layers.Layer] = [*reversed(each.blocks), each.embeddings]
        for depth, layer in enumerate(layers, start=1):
            factors[f"{path}/{layer.name}/"] = settings.layer_decay**depth
    return factors


def _ways(encoder: Encoder) -> dict[str, Encoder]:
    """The encoder, and its right-to-left encoder if it has one, by the path of their weights."""
    ways = {encoder.name: encoder}
    if encoder.right_to_left is not None:
        ways[f"{encoder.name}/{encoder.right_to_left.name}"] = encoder.right_to_left
    return ways
