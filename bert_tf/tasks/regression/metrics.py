"""Metrics of predicted numbers under GLUE's names."""

import numpy as np


def regression_metrics(predictions: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    """Metrics of predicted numbers.

    >>> metrics = regression_metrics(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 6.0]))
    >>> {name: round(value, 2) for name, value in metrics.items()}
    {'pearson': 0.94, 'spearman': 1.0, 'loss': 3.0}

    Args:
        predictions: float [rows].
        targets: float [rows].

    Returns:
        `pearson` and `spearman`, the correlations, which are 0 where all predictions or all
        targets are the same; `loss`, the mean squared error.
    """
    from scipy import stats

    predictions, targets = predictions.astype(np.float64), targets.astype(np.float64)
    correlations = {"pearson": 0.0, "spearman": 0.0}
    if len(targets) > 1 and np.ptp(predictions) > 0 and np.ptp(targets) > 0:
        correlations = {
            "pearson": float(stats.pearsonr(predictions, targets).statistic),
            "spearman": float(stats.spearmanr(predictions, targets).statistic),
        }
    return correlations | {"loss": float(np.mean((predictions - targets) ** 2))}
