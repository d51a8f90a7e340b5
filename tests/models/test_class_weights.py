"""Weights of classes keep the loss a mean over rows."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.models.class_weights import WeightedCrossEntropy, class_weights

COUNTS = np.array([6, 2, 4])
LABELS = ("a", "b", "c")


@pytest.mark.parametrize("wanted", ["balanced", {"b": 5.0}, {"a": 0.1, "b": 1.0, "c": 7.0}])
def test_rows_weigh_one_on_average(wanted):
    weights = class_weights(wanted, LABELS, COUNTS)
    assert np.dot(weights, COUNTS) == pytest.approx(COUNTS.sum())


def test_balanced_classes_weigh_the_same_together_even_if_one_has_no_rows():
    weights = np.array(class_weights("balanced", LABELS, COUNTS))
    np.testing.assert_allclose(weights * COUNTS, COUNTS.sum() / 3)
    weights = np.array(class_weights("balanced", LABELS, np.array([6, 0, 2])))
    np.testing.assert_allclose(weights * [6, 0, 2], [4, 0, 4])


def test_proportions_are_as_given():
    weights = class_weights({"b": 5.0}, LABELS, COUNTS)
    np.testing.assert_allclose(np.array(weights) / weights[0], [1, 5, 1])


def test_a_weight_for_no_label_is_refused():
    with pytest.raises(UserError, match="class_weights has 'd', which is not a label; .* a, b, c"):
        class_weights({"d": 2.0}, LABELS, COUNTS)


def test_the_loss_is_the_weighted_mean_and_is_saved_with_its_weights():
    labels, logits = tf.constant([0, 2, 2]), tf.random.stateless_normal([3, 3], [1, 2])
    loss = WeightedCrossEntropy([0.5, 1.0, 2.0])
    rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    np.testing.assert_allclose(loss(labels, logits), tf.reduce_mean(rows * [0.5, 2.0, 2.0]))
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    np.testing.assert_allclose(again(labels, logits), loss(labels, logits))
