"""Weights of classes keep the loss a mean over rows."""

import numpy as np
import pytest

from bert_tf.errors import UserError
from bert_tf.tasks.classification.run import class_weights

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
