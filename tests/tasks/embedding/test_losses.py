"""Losses of vectors equal those of sentence-transformers, and so do their gradients."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import (
    BatchAllTriplet,
    CoSENT,
    CosineRegression,
    Distillation,
    Matryoshka,
    MultipleNegativesRanking,
    OnlineContrastive,
)
from tests.tasks.refusals import refusal

GOLDEN = dict(np.load(Path(__file__).parents[2] / "fixtures" / "embedding_losses.npz"))
DIMS, WEIGHTS = [8, 4, 2], [1.0, 0.5, 0.25]
# By the names of make_embedding_losses.py: the loss and the name of its targets.
CASES = {
    "ranking_of_pairs": (MultipleNegativesRanking(), "texts"),
    "ranking": (MultipleNegativesRanking(scale=5.0), "texts"),
    "ranking_both_ways": (MultipleNegativesRanking(symmetric=True), "texts"),
    "cosent": (CoSENT(), "scores"),
    "regression": (CosineRegression(), "scores"),
    "contrastive": (OnlineContrastive(), "binary"),
    "contrastive_of_one_kind": (OnlineContrastive(), "alike"),
    "triplets": (BatchAllTriplet(), "labels"),
    "few_triplets": (BatchAllTriplet(margin=0.5), "labels"),
    "distillation": (Distillation(), "teacher"),
    "matryoshka_ranking": (Matryoshka(MultipleNegativesRanking(), DIMS, WEIGHTS), "texts"),
    "matryoshka_triplets": (Matryoshka(BatchAllTriplet(), DIMS), "labels"),
    "matryoshka_distillation": (Matryoshka(Distillation(), DIMS, WEIGHTS), "teacher"),
}


def loss_and_gradient(loss, targets, vectors):
    def compute(targets, vectors):
        with tf.GradientTape() as tape:
            tape.watch(vectors)
            value = loss.call(targets, vectors)
        return value, tape.gradient(value, vectors)

    # As it is trained with, in a graph.
    if vectors.dtype == np.float32:
        compute = tf.function(compute, autograph=False)
    return [each.numpy() for each in compute(tf.constant(targets), tf.constant(vectors))]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradient_are_those_of_sentence_transformers(case, dtype):
    loss, name = CASES[case]
    expected = GOLDEN[f"{case}/gradient"]
    vectors = GOLDEN["vectors"][:, : expected.shape[1]].astype(dtype)
    targets = GOLDEN.get(name, np.arange(vectors.shape[0] * vectors.shape[1]))
    if name == "texts":
        targets = targets.reshape(vectors.shape[:2])
    found, gradient = loss_and_gradient(loss, targets, vectors)
    assert found.dtype == dtype
    tolerance = {"float64": 1e-9, "float32": 1e-6}[dtype]
    np.testing.assert_allclose(found, GOLDEN[f"{case}/loss"], rtol=tolerance)
    np.testing.assert_allclose(gradient, expected, atol=tolerance * max(1, abs(expected).max()))


@pytest.mark.parametrize("case", CASES)
def test_keras_saves_and_loads_a_loss(case):
    loss, _ = CASES[case]
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert type(again) is type(loss) and again.get_config() == loss.get_config()
    assert (again.takes, again.in_batch) == (loss.takes, loss.in_batch)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("copied", [(0, 0), (1, 1), (0, 1), (1, 0)])
def test_a_text_of_a_row_is_no_negative_of_that_row(copied, symmetric):
    # Text `there` of the last row is text `here` of the first one.
    there, here = copied
    vectors = GOLDEN["vectors"][:4, :2].copy()
    texts = np.arange(8).reshape(4, 2)
    texts[3, there], vectors[3, there] = texts[0, here], vectors[0, here]
    loss = MultipleNegativesRanking(symmetric=symmetric)
    _, gradient = loss_and_gradient(loss, texts, vectors)
    # Only rows 0 and 3 do not push each other away; the two in between are as before.
    distinct, _ = loss_and_gradient(loss, np.arange(8).reshape(4, 2), vectors)
    same, _ = loss_and_gradient(loss, texts, vectors)
    assert same < distinct
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    scores = 20 * unit[:, 0] @ unit[:, 1].T
    allowed = np.ones([4, 4], bool)
    allowed[0, 3] = allowed[3, 0] = False

    def entropy(scores):
        return np.log(np.where(allowed, np.exp(scores), 0).sum(axis=1)) - scores.diagonal()

    if copied in ((0, 0), (1, 1)):
        expected = entropy(scores).mean()
        if symmetric:
            expected = (expected + entropy(scores.T).mean()) / 2
        np.testing.assert_allclose(same, expected)
    assert np.isfinite(gradient).all()


def test_a_hard_negative_that_is_the_positive_does_not_count():
    vectors = GOLDEN["vectors"][:3].copy()
    vectors[0, 2] = vectors[0, 1]
    texts = np.arange(9).reshape(3, 3)
    texts[0, 2] = texts[0, 1]
    loss = MultipleNegativesRanking()
    found, _ = loss_and_gradient(loss, texts, vectors)
    counted, _ = loss_and_gradient(loss, np.arange(9).reshape(3, 3), vectors)
    assert found < counted


def test_each_text_with_itself_is_its_own_positive():
    vectors = np.repeat(GOLDEN["vectors"][:3, :1], 2, axis=1)
    texts = np.array([[4, 4], [7, 7], [9, 9]])
    found, _ = loss_and_gradient(MultipleNegativesRanking(), texts, vectors)
    other, _ = loss_and_gradient(MultipleNegativesRanking(), np.arange(6).reshape(3, 2), vectors)
    np.testing.assert_allclose(found, other)


def test_triplets_of_one_class_give_nothing():
    texts = GOLDEN["vectors"][:, :2]
    found, gradient = loss_and_gradient(BatchAllTriplet(), np.zeros(6, int), texts)
    assert found == 0 and not gradient.any()


def test_equal_vectors_have_a_gradient():
    same = np.ones([4, 1, 3])
    _, gradient = loss_and_gradient(BatchAllTriplet(), np.array([0, 0, 1, 1]), same)
    assert np.isfinite(gradient).all()
    _, gradient = loss_and_gradient(CosineRegression(), np.ones(4), np.zeros([4, 2, 3]))
    assert np.isfinite(gradient).all()


def test_mistakes_are_one_sentence():
    said = "the scale of a loss must be above 0, not 0"
    assert refusal(MultipleNegativesRanking, scale=0) == said
    assert refusal(Matryoshka, CoSENT(), []).startswith("Matryoshka's dims must be whole numbers")
    said = "Matryoshka has 2 dims, but 1 weights; give one for each"
    assert refusal(Matryoshka, CoSENT(), [4, 2], [1.0]) == said
    said = "Matryoshka wraps another bert_tf loss, not 'cosent'"
    assert refusal(Matryoshka, "cosent", [4]) == said
