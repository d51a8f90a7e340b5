"""Metrics of predicted sets of labels."""

from collections.abc import Sequence

import numpy as np

from bert_tf.console import logger

# The threshold of a label that never occurs.
DEFAULT_THRESHOLD = 0.5


def multi_label_metrics(
    logits: np.ndarray, given: np.ndarray, thresholds: Sequence[float], classes: Sequence[str]
) -> dict[str, float]:
    """Metrics of predicted sets of labels, by scikit-learn.

    The means over classes leave out the classes that never occur; a warning names them.

    >>> logits, given = np.array([[3.0, -3.0], [3.0, 3.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> metrics = multi_label_metrics(logits, given, thresholds=[0.5, 0.5], classes=["a", "b"])
    >>> for name, value in metrics.items():
    ...     print(name, round(value, 2))
    micro_f1 0.8
    macro_f1 0.83
    mean_average_precision 0.75
    label_ranking_average_precision 0.75
    loss 0.8

    Args:
        logits: float [rows, classes].
        given: float [rows, classes], 1 where a row has a label, else 0.
        thresholds: the least probability with which each label is given.
        classes: their names.

    Returns:
        `micro_f1` of all decisions together; `macro_f1` and `mean_average_precision`, means over
        classes; `label_ranking_average_precision`; `loss`, the mean binary cross-entropy.
    """
    from sklearn import metrics

    probabilities = sigmoid(logits)
    predicted = probabilities >= np.asarray(thresholds, np.float32)
    truth = given > 0
    occurs = np.any(truth, axis=0)
    if not occurs.all():
        absent = [name for name, there in zip(classes, occurs.tolist(), strict=True) if not there]
        logger.warning(
            f"labels that never occur in the data: {', '.join(absent)}; macro_f1 and "
            "mean_average_precision are means over the others"
        )
    macro = average_precision = 0.0
    if occurs.any():
        macro = metrics.f1_score(
            truth[:, occurs], predicted[:, occurs], average="macro", zero_division=0.0
        )
        average_precision = metrics.average_precision_score(
            truth[:, occurs], probabilities[:, occurs], average="macro"
        )
    # log(1 + e^x) - x y, in a form that no large x breaks.
    losses = np.maximum(logits, 0) - logits * given + np.log1p(np.exp(-np.abs(logits)))
    return {
        "micro_f1": float(metrics.f1_score(truth, predicted, average="micro", zero_division=0.0)),
        "macro_f1": float(macro),
        "mean_average_precision": float(average_precision),
        "label_ranking_average_precision": float(
            metrics.label_ranking_average_precision_score(truth, probabilities)
        ),
        "loss": float(losses.mean()),
    }


def best_thresholds(logits: np.ndarray, given: np.ndarray) -> tuple[float, ...]:
    """The threshold with the best F1 for each class; 0.5 for a class that never occurs.

    >>> logits, given = np.array([[-2.0], [-1.0], [1.0]]), np.array([[0.0], [1.0], [1.0]])
    >>> [round(each, 2) for each in best_thresholds(logits, given)]
    [0.19]

    Args:
        logits: float [rows, classes].
        given: float [rows, classes], 1 where a row has a label, else 0.
    """
    from sklearn import metrics

    thresholds = []
    for scores, truth in zip(sigmoid(logits).T, given.T > 0, strict=True):
        if not truth.any():
            thresholds.append(DEFAULT_THRESHOLD)
            continue
        precision, recall, candidates = metrics.precision_recall_curve(truth, scores)
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
        # The last entry of both is no threshold.
        reached = candidates[int(np.argmax(f1[:-1]))]
        # Halfway to the next lower score, so that rounding moves no score across it.
        lower = scores[scores < reached].max(initial=0)
        thresholds.append(float((reached + lower) / 2))
    return tuple(thresholds)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Probabilities of logits, float32.

    >>> [round(float(each), 2) for each in sigmoid(np.array([-2.0, 0.0, 2.0]))]
    [0.12, 0.5, 0.88]
    """
    return (0.5 * (1 + np.tanh(0.5 * logits.astype(np.float64)))).astype(np.float32)
