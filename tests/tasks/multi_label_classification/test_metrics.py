"""The metrics are scikit-learn's; thresholds are those of the best F1."""

import numpy as np
import pytest
from sklearn import metrics

from bert_tf.tasks.multi_label_classification.metrics import (
    best_thresholds,
    multi_label_metrics,
    sigmoid,
)

RANDOM = np.random.RandomState(0)
LOGITS = RANDOM.normal(size=(40, 3)).astype(np.float32)
GIVEN = (LOGITS + RANDOM.normal(size=LOGITS.shape) > 0.5).astype(np.float32)
NAMES = ("a", "b", "c")


def test_they_are_what_scikit_learn_computes():
    found = multi_label_metrics(LOGITS, GIVEN, (0.5, 0.4, 0.6), NAMES)
    probabilities = 1 / (1 + np.exp(-LOGITS.astype(np.float64)))
    predicted = probabilities >= np.array([0.5, 0.4, 0.6])
    assert found == pytest.approx(
        {
            "micro_f1": metrics.f1_score(GIVEN, predicted, average="micro"),
            "macro_f1": metrics.f1_score(GIVEN, predicted, average="macro"),
            "mean_average_precision": metrics.average_precision_score(GIVEN, probabilities),
            "label_ranking_average_precision": metrics.label_ranking_average_precision_score(
                GIVEN, probabilities
            ),
            "loss": metrics.log_loss(GIVEN.ravel(), probabilities.ravel()),
        },
        abs=1e-6,
    )


def test_a_class_that_never_occurs_is_named_and_left_out_of_the_means(capsys):
    given = GIVEN.copy()
    given[:, 1] = 0
    found = multi_label_metrics(LOGITS, given, (0.5, 0.5, 0.5), NAMES)
    said = "labels that never occur in the data: b; macro_f1 and mean_average_precision are means"
    assert said in capsys.readouterr().err
    others = multi_label_metrics(LOGITS[:, [0, 2]], given[:, [0, 2]], (0.5, 0.5), ("a", "c"))
    for name in ("macro_f1", "mean_average_precision"):
        assert found[name] == pytest.approx(others[name])
    assert found["micro_f1"] < others["micro_f1"]


def test_rows_without_any_label_have_metrics():
    found = multi_label_metrics(LOGITS, np.zeros_like(GIVEN), (0.5, 0.5, 0.5), NAMES)
    assert (found["macro_f1"], found["mean_average_precision"]) == (0.0, 0.0)


def test_the_threshold_of_each_class_has_the_best_f1():
    probabilities = sigmoid(LOGITS)
    for place, threshold in enumerate(best_thresholds(LOGITS, GIVEN)):
        scores, truth = probabilities[:, place], GIVEN[:, place]
        tried = [metrics.f1_score(truth, scores >= each) for each in scores]
        assert metrics.f1_score(truth, scores >= threshold) == pytest.approx(max(tried))


def test_a_class_that_never_occurs_has_the_usual_threshold():
    assert best_thresholds(LOGITS, GIVEN * [0, 1, 1])[0] == 0.5


def test_a_threshold_lies_between_scores():
    """Rounding in another kernel moves no score across it."""
    logits = np.array([[-1.0], [1.0]], np.float32)
    (threshold,) = best_thresholds(logits, np.array([[0.0], [1.0]]))
    assert threshold == pytest.approx(0.5)
