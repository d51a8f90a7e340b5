"""Metrics of predicted numbers against hand-made cases."""

import numpy as np
import pytest

from bert_tf.tasks.regression.metrics import regression_metrics


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
