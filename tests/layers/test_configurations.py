"""Layers come back from their configurations, alone and with their precision."""

import keras
import pytest

from bert_tf.layers.embeddings import Embeddings
from bert_tf.layers.linear import Linear
from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.layers.transformer import TransformerBlock

LAYERS = {
    "embeddings": lambda **options: Embeddings(9, 4, 8, 2, 0.2, 0.05, 1e-9, **options),
    "linear": lambda **options: Linear(3, "gelu_new", 0.05, **options),
    "head": lambda **options: MaskedLMHead("gelu", 0.05, 1e-9, **options),
    "block": lambda **options: TransformerBlock(2, 8, "gelu", 0.2, 0.3, 0.05, 1e-9, **options),
}


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS.keys())
def test_layers_come_back_from_their_configuration(make, dtype):
    layer = make(name="it", dtype=dtype)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is type(layer)
    assert again.get_config() == layer.get_config()
    assert again.dtype_policy == layer.dtype_policy
