"""Texts have vectors, whatever the checkpoint is of, and vectors are compared."""

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal

TEXTS = ["the cat sat", "a dog", "fish " * 40]


@pytest.fixture(scope="module")
def embedder():
    return tiny.embedder()


def test_vectors_are_an_array(embedder):
    vectors = embedder.predict(TEXTS)
    assert (vectors.dtype, vectors.shape) == (np.float32, (3, 16))
    np.testing.assert_allclose(embedder.predict(TEXTS[0]), vectors[0], atol=1e-6)
    np.testing.assert_allclose(embedder.predict(text=TEXTS), vectors, atol=1e-6)
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2)
    np.testing.assert_allclose(embedder.predict(dataset), vectors, atol=1e-6)


def test_normalized_vectors_have_length_one():
    vectors = tiny.embedder(normalize=True).predict(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    plain = tiny.embedder().predict(TEXTS)
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, plain, atol=1e-6)


def test_similarity_is_the_cosine_of_texts_or_vectors(embedder):
    vectors = embedder.predict(TEXTS)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = unit @ unit.T
    np.testing.assert_allclose(embedder.similarity(TEXTS, TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(embedder.similarity(vectors, TEXTS), expected, atol=1e-6)
    assert embedder.similarity("the cat sat", TEXTS).shape == (1, 3)
    assert embedder.similarity(TEXTS, TEXTS).max() <= 1
    assert (embedder.similarity(np.zeros([1, 16], np.float32), TEXTS) == 0).all()


@pytest.mark.parametrize("make", [tiny.classifier, tiny.answerer, tiny.filler])
def test_the_encoder_of_any_checkpoint_is_taken(make, tmp_path):
    labels = {"labels": ["a", "b"]} if make is tiny.classifier else {}
    model = make(**labels)
    model.save_checkpoint(tmp_path / "checkpoint")
    embedder = bert_tf.TextEmbedder.from_checkpoint(tmp_path / "checkpoint", max_length=32)
    expected = bert_tf.TextEmbedder(model.encoder, tiny.tokenizer()).predict(TEXTS)
    np.testing.assert_allclose(embedder.predict(TEXTS), expected, atol=1e-6)


def test_files_keep_its_settings(tmp_path):
    model = tiny.embedder(pooling="cls", normalize=True, max_length=8)
    model.save(tmp_path / "model.keras")
    model.save_checkpoint(tmp_path / "checkpoint", "huggingface")
    for name in ("model.keras", "checkpoint"):
        again = bert_tf.load(tmp_path / name)
        assert type(again) is bert_tf.TextEmbedder and again.settings == model.settings
        np.testing.assert_allclose(again.predict(TEXTS), model.predict(TEXTS), atol=1e-6)


def test_mistakes_are_one_sentence(embedder):
    said = "unknown pooling 'max'; choose one of cls, mean, pooled"
    assert refusal(tiny.embedder, pooling="max") == said
    assert refusal(embedder.predict, ["a", 3]) == "text 1 is 3, not a string"
    assert refusal(embedder.predict, []) == "there are no texts; give at least one"
    said = "vectors of shape [1, 3] are not of this model, whose width is 16"
    assert refusal(embedder.similarity, np.zeros([1, 3], np.float32), TEXTS) == said
