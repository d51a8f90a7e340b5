"""Metrics of predicted classes against hand-made cases."""

import numpy as np
import pytest

from bert_tf.tasks.classification.metrics import classification_metrics


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
