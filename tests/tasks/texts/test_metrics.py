"""Metrics of predicted classes and numbers against hand-made cases."""

import numpy as np
import pytest

from bert_tf.tasks.texts.metrics import classification_metrics, regression_metrics


def logits(*classes: int, of: int) -> np.ndarray:
    return np.eye(of, dtype=np.float32)[list(classes)] * 4


def test_two_classes_as_glue_has_them():
    metrics = classification_metrics(logits(1, 1, 0, 0, 1, of=2), np.array([1, 0, 0, 1, 1]))
    # 2 true positives, 1 false positive, 1 false negative, 1 true negative.
    assert metrics["accuracy"] == pytest.approx(3 / 5)
    assert metrics["f1"] == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert metrics["mcc"] == pytest.approx((2 * 1 - 1 * 1) / np.sqrt(3 * 3 * 2 * 2))
    surprise = np.log(1 + np.exp(-4))
    assert metrics["loss"] == pytest.approx((3 * surprise + 2 * (surprise + 4)) / 5)


def test_of_more_classes_f1_is_the_mean_over_them():
    metrics = classification_metrics(logits(0, 1, 1, of=3), np.array([0, 1, 2]))
    assert metrics["f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_always_the_same_answer_has_no_correlation():
    metrics = classification_metrics(logits(1, 1, 1, of=2), np.array([1, 0, 1]))
    assert metrics["mcc"] == 0.0


@pytest.mark.filterwarnings("error")
def test_one_class_in_all_is_no_warning():
    metrics = classification_metrics(logits(1, 1, of=2), np.array([1, 1]))
    assert (metrics["mcc"], metrics["accuracy"]) == (0.0, 1.0)


def test_correlations_and_squared_error():
    predictions, targets = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 3.0, 2.0, 9.0])
    metrics = regression_metrics(predictions.astype(np.float32), targets.astype(np.float32))
    assert metrics["pearson"] == pytest.approx(np.corrcoef(predictions, targets)[0, 1], abs=1e-6)
    # Ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * (1 + 1) / (4 * 15).
    assert metrics["spearman"] == pytest.approx(0.8)
    assert metrics["loss"] == pytest.approx((0 + 1 + 4 + 1) / 4)


@pytest.mark.parametrize(
    ("predictions", "targets"), [([1, 1], [1, 2]), ([1, 2], [3, 3]), ([1], [2])]
)
def test_where_all_are_the_same_there_is_no_correlation(predictions, targets):
    metrics = regression_metrics(np.array(predictions), np.array(targets))
    assert metrics["pearson"] == metrics["spearman"] == 0.0
