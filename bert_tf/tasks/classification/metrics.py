"""Metrics of predicted classes under GLUE's names."""

import numpy as np


def classification_metrics(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """GLUE's metrics of logits, float [rows, classes], and labels, int [rows]. `f1` is of class 1
    of two, as GLUE's MRPC and QQP have it, else the mean over classes; `loss` is the cross-entropy.
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
        # With a single class it is 0, and scikit-learn warns.
        "mcc": float(metrics.matthews_corrcoef(labels, predicted)) if several else 0.0,
        "loss": float(-log_probabilities[np.arange(len(labels)), labels].mean()),
    }


def accuracy_and_loss(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """The `accuracy` and the `loss` of `classification_metrics`."""
    metrics = classification_metrics(logits, labels)
    return {name: metrics[name] for name in ("accuracy", "loss")}
