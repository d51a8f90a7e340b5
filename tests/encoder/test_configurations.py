"""Layers come back from their configurations, alone and with their precision."""

import keras
import pytest

from bert_tf.encoder.block import TransformerBlock
from bert_tf.encoder.embeddings import Embeddings
from bert_tf.encoder.linear import Linear
from bert_tf.models.masked_lm_head import MaskedLMHead
from tests import tiny

SIZES = tiny.encoder_config(hidden_dropout_prob=0.2, layer_norm_eps=1e-9)
LAYERS = {
    "embeddings": lambda **options: Embeddings(SIZES, **options),
    "linear": lambda **options: Linear(3, "gelu_new", 0.05, **options),
    "head": lambda **options: MaskedLMHead("gelu", 0.05, 1e-9, **options),
    "block": lambda **options: TransformerBlock(SIZES, 3, **options),
}


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS.keys())
def test_layers_come_back_from_their_configuration(make, dtype):
    layer = make(name="it", dtype=dtype)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is type(layer)
    assert again.get_config() == layer.get_config()
    assert again.dtype_policy == layer.dtype_policy
