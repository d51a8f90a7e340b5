"""Lower learning rates for lower layers, and layers that do not learn."""

import keras

from bert_tf.config.train import FinetuningTrain
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError


def check(blocks: int, settings: FinetuningTrain) -> None:
    """Raises a UserError if `train.frozen_layers` is more than there are blocks."""
    if (settings.frozen_layers or 0) > blocks:
        raise UserError(
            f"train.frozen_layers {settings.frozen_layers} is more than the model's {blocks} "
            "layers; lower it"
        )


def freeze(encoder: Encoder, settings: FinetuningTrain) -> None:
    """Freezes the embeddings and the first `train.frozen_layers` blocks, before `compile`."""
    frozen = settings.frozen_layers
    if frozen is None:
        return
    check(encoder.config.num_hidden_layers, settings)
    for each in encoder.towers().values():
        layers: list[keras.layers.Layer] = [each.embeddings, *each.blocks[:frozen]]
        for layer in layers:
            layer.trainable = False


def rate_factors(encoder: Encoder, settings: FinetuningTrain) -> dict[str, float]:
    """What the learning rate of each layer is multiplied by: `train.layer_decay` for the last
    block, its square for the block below, and so on down to the embeddings.
    """
    if settings.layer_decay == 1:
        return {}
    factors = {}
    for path, each in encoder.towers().items():
        layers: list[keras.layers.Layer] = [*reversed(each.blocks), each.embeddings]
        for depth, layer in enumerate(layers, start=1):
            factors[f"{path}/{layer.name}/"] = settings.layer_decay**depth
    return factors
