"""Metrics of predicted classes under GLUE's names."""

import numpy as np


def classification_metrics(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Metrics of predicted classes.

    >>> logits = np.array([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0], [0.0, 2.0]])
    >>> metrics = classification_metrics(logits, np.array([0, 1, 1, 1]))
    >>> {name: round(value, 2) for name, value in metrics.items()}
    {'accuracy': 0.75, 'f1': 0.8, 'mcc': 0.58, 'loss': 0.63}

    Args:
        logits: float [rows, classes].
        labels: int [rows].

    Returns:
        `accuracy`; `f1`, of class 1 where there are two classes, as GLUE's MRPC and QQP have it,
        else the mean over classes; `mcc`, Matthews' correlation; `loss`, the mean cross-entropy.
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
    """The `accuracy` and the `loss` of `classification_metrics`.

    >>> accuracy_and_loss(np.array([[9.0, 0.0], [9.0, 0.0]]), np.array([0, 1]))["accuracy"]
    0.5
    """
    metrics = classification_metrics(logits, labels)
    return {name: metrics[name] for name in ("accuracy", "loss")}
