"""Metrics of predicted numbers under GLUE's names."""

import numpy as np


def regression_metrics(predictions: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    """`pearson` and `spearman`, 0 where all numbers are the same, and `loss`, the squared error."""
    from scipy import stats

    predictions, targets = predictions.astype(np.float64), targets.astype(np.float64)
    correlations = {"pearson": 0.0, "spearman": 0.0}
    if len(targets) > 1 and np.ptp(predictions) > 0 and np.ptp(targets) > 0:
        correlations = {
            "pearson": float(stats.pearsonr(predictions, targets).statistic),
            "spearman": float(stats.spearmanr(predictions, targets).statistic),
        }
    return correlations | {"loss": float(np.mean((predictions - targets) ** 2))}
