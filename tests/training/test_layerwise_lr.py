"""Frozen layers stay as they are, and deep layers move less, as configured in YAML."""

import keras
import numpy as np
import pytest

from bert_tf import Encoder, TextClassifier
from bert_tf.checkpoints.names import weight_names
from bert_tf.config.train import FinetuningTrain
from bert_tf.errors import UserError
from bert_tf.optimization import make_optimizer
from bert_tf.training import layerwise_lr
from tests import tiny

# What each layer learns with a decay of 0.5.
SHARES = {"encoder/layer_1/": 0.5, "encoder/layer_0/": 0.25, "encoder/embeddings/": 0.125}


@pytest.fixture
def model():
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 1, "initializer_range": 0.02}
    return TextClassifier(Encoder(tiny.encoder_config(4, **sizes)), None, range(2))


def moved(model, **settings):
    """How far an update with equal gradients moves each weight, by our names."""
    settings = FinetuningTrain(epochs=1, warmup_fraction=0, weight_decay=0, **settings)
    layerwise_lr.freeze(model.encoder, settings)
    optimizer = make_optimizer(settings, 10, layerwise_lr.rate_factors(model.encoder, settings))
    before = {name: weight.numpy() for name, weight in weight_names(model).items()}
    weights = model.trainable_weights
    optimizer.apply([np.full(weight.shape, 1e-3, "float32") for weight in weights], weights)
    return {
        name: float(np.abs(weight.numpy() - before[name]).max())
        for name, weight in weight_names(model).items()
    }


@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
def test_each_layer_learns_at_its_share_of_the_rate_of_the_one_above(model, optimizer):
    if optimizer == "lamb":  # which moves a weight in proportion to its size
        for weight in model.weights:
            weight.assign(np.ones(weight.shape))
    # The rate is so small that the second update starts almost where the first one did.
    even = moved(model, optimizer=optimizer, learning_rate=1e-3)
    scaled = moved(model, optimizer=optimizer, learning_rate=1e-3, layer_decay=0.5)
    shares = {name: scaled[name] / even[name] for name in even}
    expected = {"classifier/": 1.0, "encoder/pooler/": 1.0, **SHARES}
    for name, share in shares.items():
        (wanted,) = (value for start, value in expected.items() if name.startswith(start))
        assert share == pytest.approx(wanted, rel=0.05), name


def test_the_shares_of_the_rate_are_part_of_the_optimizers_configuration(model):
    settings = FinetuningTrain(epochs=1, layer_decay=0.5)
    optimizer = make_optimizer(settings, 10, layerwise_lr.rate_factors(model.encoder, settings))
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.rate_factors == SHARES


@pytest.mark.parametrize(
    ("frozen", "still"),
    [(None, ()), (0, ("embeddings",)), (1, ("embeddings", "layer_0"))],
)
def test_the_embeddings_and_the_first_layers_are_frozen(model, frozen, still):
    distances = moved(model, frozen_layers=frozen)
    for name, distance in distances.items():
        assert (distance == 0) == name.startswith(tuple(f"encoder/{each}/" for each in still)), name


def test_more_frozen_layers_than_there_are_is_refused(model):
    with pytest.raises(UserError, match="frozen_layers 3 is more than the model's 2 layers"):
        layerwise_lr.freeze(model.encoder, FinetuningTrain(epochs=1, frozen_layers=3))
