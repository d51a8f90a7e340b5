"""Losses of ranking are those of sentence-transformers, with their gradients, on padded lists."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.tasks.reranking.losses import LOSSES, MeanSquaredErrorLoss, loss_of

# Made by tests/fixtures/make_ranking_losses.py.
GOLDEN = json.loads((Path(__file__).parents[2] / "fixtures/ranking_losses.json").read_text())
CASES = [pytest.param(case, id=f"{case['name']}-{case['case']}") for case in GOLDEN]


def padded(rows, padding, width=None):
    """float32 [rows, width]."""
    width = width or max(map(len, rows))
    table = [[*row, *[padding] * (width - len(row))] for row in rows]
    return tf.constant(table, tf.float32)


def loss_and_gradient(loss, relevance, logits):
    with tf.GradientTape() as tape:
        tape.watch(logits)
        value = loss(relevance, logits)
    return float(value), tape.gradient(value, logits).numpy()


def made(name):
    name, _, activation = name.partition("/")
    return MeanSquaredErrorLoss(activation) if activation else loss_of(name)


@pytest.mark.parametrize("more", [0, 3])
@pytest.mark.parametrize("case", CASES)
def test_they_equal_the_reference_whatever_the_padding(case, more):
    width = max(map(len, case["logits"])) + more
    # The model hides the scores of padding; the losses ignore them also if they are not hidden.
    logits = padded(case["logits"], 5.0, width)
    relevance = padded(case["relevance"], np.nan, width)
    value, gradient = loss_and_gradient(made(case["name"]), relevance, logits)
    assert value == pytest.approx(case["loss"], rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(gradient, padded(case["gradient"], 0.0, width), atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_a_device_without_rows_adds_nothing(name):
    relevance, logits = tf.zeros([0, 2]), tf.zeros([0, 2])
    loss = loss_of(name)
    assert float(tf.reduce_sum(loss.sums(relevance, logits))) == 0
    assert float(tf.reduce_sum(loss.counts(relevance))) == 0


def test_a_query_without_a_pair_has_no_lambda_loss():
    value, gradient = loss_and_gradient(
        loss_of("lambda_loss"), tf.constant([[1.0, 1.0]]), tf.constant([[0.3, 0.5]])
    )
    assert value == 0
    assert not gradient.any()


@pytest.mark.parametrize("name", LOSSES)
def test_keras_saves_them(name):
    loss = loss_of(name)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()


def test_another_name_is_refused():
    with pytest.raises(bert_tf.UserError, match="unknown loss 'hinge'; choose one of binary_cross"):
        loss_of("hinge")
    with pytest.raises(bert_tf.UserError, match="activation must be"):
        MeanSquaredErrorLoss("tanh")
