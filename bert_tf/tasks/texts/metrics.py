"""Metrics of predicted classes and of predicted numbers under GLUE's names."""

import numpy as np


def classification_metrics(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """GLUE's metrics of logits, float [rows, classes], and labels, int [rows]. With two classes,
    `f1` is that of class 1, as for GLUE's MRPC and QQP, else the mean; `loss` is the cross-entropy.
    """
    from sklearn import metrics

    predicted = logits.argmax(axis=1)
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    several = len({*labels.tolist(), *predicted.tolist()}) > 1
    average = "binary" if logits.shape[1] == 2 else "macro"
    return {
        "accuracy": float(metrics.accuracy_score(labels, predicted)),
        "f1": float(metrics.f1_score(labels, predicted, average=average, zero_division=0.0)),
        # With a single class scikit-learn returns 0 with a warning.
        "mcc": float(metrics.matthews_corrcoef(labels, predicted)) if several else 0.0,
        "loss": float(-log_probabilities[np.arange(len(labels)), labels].mean()),
    }


def accuracy_and_loss(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """The `accuracy` and the `loss` of `classification_metrics`."""
    found = classification_metrics(logits, labels)
    return {"accuracy": found["accuracy"], "loss": found["loss"]}


def regression_metrics(predictions: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    """`pearson` and `spearman`, 0 where all numbers are the same, and `loss`, the squared error."""
    from scipy import stats

    predictions, targets = predictions.astype(np.float64), targets.astype(np.float64)
    is_flat = len(targets) < 2 or np.ptp(predictions) == 0 or np.ptp(targets) == 0
    return {
        "pearson": 0.0 if is_flat else float(stats.pearsonr(predictions, targets).statistic),
        "spearman": 0.0 if is_flat else float(stats.spearmanr(predictions, targets).statistic),
        "loss": float(np.mean((predictions - targets) ** 2)),
    }
