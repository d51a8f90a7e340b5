"""The exported encoder gives each text the vector that the model has for it."""

import numpy as np
import pytest
import tensorflow as tf

import export
from bert_tf.errors import UserError
from bert_tf.text import Preprocessor

TEXTS = ["the cat sat .", "", "a", "fish " * 40]


def vectors(outputs, mask, pooling):
    """The pooling, from what the encoder gives for padded rows."""
    if pooling == "pooled":
        return outputs["pooled_output"].numpy()
    tokens = outputs["sequence_output"].numpy()
    if pooling == "cls":
        return tokens[:, 0]
    return np.stack([row[real == 1].mean(axis=0) for row, real in zip(tokens, mask, strict=True)])


@pytest.mark.parametrize("pooling", ["cls", "mean", "pooled"])
def test_vectors_are_the_encoders(exported, models, tokenizer, pooling):
    settings = {} if pooling == "mean" else {"pooling": pooling}  # mean is what one expects
    loaded = tf.saved_model.load(exported("embedding", **settings))
    found = loaded.signatures["serving_default"](text=tf.constant(TEXTS))
    inputs = Preprocessor(tokenizer, max_length=32)(TEXTS)
    expected = vectors(models("embedding").encoder(inputs), inputs["input_mask"].numpy(), pooling)
    np.testing.assert_allclose(found["embedding"], expected, atol=2e-6)


def test_a_text_has_the_same_vector_in_any_company(exported):
    answer = tf.saved_model.load(exported("embedding")).signatures["serving_default"]
    many = answer(text=tf.constant(TEXTS * 250))["embedding"]
    alone = [answer(text=tf.constant([text]))["embedding"][0] for text in TEXTS]
    np.testing.assert_allclose(many, np.tile(alone, [250, 1]), atol=2e-6)
    assert answer(text=tf.constant([], tf.string))["embedding"].shape == (0, 16)


def test_any_task_model_lends_its_encoder(models, tokenizer, tmp_path):
    model = models("classification")
    out = export.save(model, tokenizer, tmp_path / "out", kind="embedding", pooling="pooled")
    answer = tf.saved_model.load(out).signatures["serving_default"]
    expected = model.encoder(Preprocessor(tokenizer, max_length=32)(TEXTS))["pooled_output"]
    found = answer(text=tf.constant(TEXTS))["embedding"]
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_an_unknown_pooling_is_refused(models, tokenizer, tmp_path):
    with pytest.raises(UserError, match="unknown pooling 'max'; choose one of cls, mean, pooled"):
        export.save(models("embedding"), tokenizer, tmp_path / "x", kind="embedding", pooling="max")
