"""Another architecture is made of new layers alone: ModernBERT gives what transformers' gives.

The weights and numbers were made by `tests/fixtures/make_modern_bert.py` with torch 2.13.0 and
transformers 5.23.0.
"""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import TextClassifier
from bert_tf.encoder.encoder import Encoder
from bert_tf.interpret.looks import attention_maps
from tests import tiny
from tests.encoder.modern_bert import ModernBlock, modern_bert

GOLDEN = dict(np.load(Path(__file__).parents[1] / "fixtures" / "modern_bert.npz"))
NUMBERS = {"vocab_size": 40, "num_hidden_layers": 5, "intermediate_size": 24}
SIZES = tiny.encoder_config(16, layer_norm_eps=1e-5, hidden_act="gelu", **NUMBERS)
INPUTS = {
    "input_word_ids": tf.constant(GOLDEN["input_word_ids"]),
    "input_mask": tf.constant(GOLDEN["input_mask"]),
    "input_type_ids": tf.zeros([3, 13], tf.int32),
}


class NarrowBlock(ModernBlock):
    """A block whose window is narrower than the golden rows."""

    reach = 2


def golden_encoder(layout: str) -> Encoder:
    """With the weights of the fixture."""
    encoder = modern_bert(SIZES, layout, with_pooler=False, block=NarrowBlock)
    weights = {name[8:]: value for name, value in GOLDEN.items() if name.startswith("weights/")}
    encoder.embeddings.table.assign(weights["embeddings.tok_embeddings.weight"])
    encoder.embeddings.norm.gamma.assign(weights["embeddings.norm.weight"])
    for i, block in enumerate(encoder.blocks):
        of_block = {name.removeprefix(f"layers.{i}."): weights[name] for name in weights}
        gated = np.split(of_block["mlp.Wi.weight"].T, 2, axis=1)
        block.query_key_value.kernel.assign(of_block["attn.Wqkv.weight"].T)
        block.attention_output.kernel.assign(of_block["attn.Wo.weight"].T)
        block.mlp_input.kernel.assign(gated[0])
        block.mlp_gate.kernel.assign(gated[1])
        block.mlp_output.kernel.assign(of_block["mlp.Wo.weight"].T)
        block.mlp_norm.gamma.assign(of_block["mlp_norm.weight"])
        if i > 0:
            block.attention_norm.gamma.assign(of_block["attn_norm.weight"])
    encoder.blocks[-1].final_norm.gamma.assign(weights["final_norm.weight"])
    return encoder


@pytest.mark.parametrize("layout", ["padded", "unpadded"])
def test_it_equals_transformers_modern_bert(layout):
    encoder = golden_encoder(layout)
    outputs = encoder(INPUTS)
    real = GOLDEN["input_mask"][..., None]
    for found, expected in (
        (outputs["encoder_outputs"][0], GOLDEN["after_first_block"]),
        (outputs["sequence_output"], GOLDEN["last"]),
    ):
        np.testing.assert_allclose(found, expected * real, rtol=0, atol=2e-5)
    positions = tf.constant([[0, 12], [6, 1], [0, 0]])
    some = encoder.encode_at(INPUTS, positions)
    expected = np.take_along_axis(GOLDEN["last"], positions.numpy()[..., None], axis=1)
    np.testing.assert_allclose(some, expected.reshape(6, 16), rtol=0, atol=2e-5)


def test_its_attention_can_be_inspected():
    first = {name: value[:1] for name, value in INPUTS.items()}
    maps = attention_maps(golden_encoder("unpadded"), first, np.arange(13)).probabilities
    np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-5)
    distance = np.abs(np.arange(13)[:, None] - np.arange(13))
    sees_far = (maps[:, :, distance > 2] > 0).any(axis=(1, 2))
    assert sees_far.tolist() == [True, False, False, True, False]


@pytest.mark.parametrize("layout", [pytest.param("padded", marks=pytest.mark.slow), "unpadded"])
def test_it_learns_in_a_task_model_and_comes_back_from_a_file(layout, tmp_path):
    keras.utils.set_random_seed(0)
    sizes = tiny.encoder_config(16, hidden_act="gelu")
    model = TextClassifier(modern_bert(sizes, layout), tiny.tokenizer())
    yes, no, *others = tiny.WORDS
    texts = [f"{others[i % len(others)]} {word} ." for i in range(16) for word in (yes, no)]
    labels = ["yes", "no"] * 16
    history = model.fit(texts, labels, epochs=6, batch_size=8, learning_rate=3e-3, verbose=0)
    losses = history.history["loss"]
    assert losses[-1] < 0.7 * losses[0]
    model.save(tmp_path / "model.keras")
    again = bert_tf.load(tmp_path / "model.keras")
    assert again.predict(texts[:3], verbose=0) == model.predict(texts[:3], verbose=0)
