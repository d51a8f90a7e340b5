"""Metrics of predicted sets of labels."""

from collections.abc import Sequence

import numpy as np

from bert_tf.console import logger

DEFAULT_THRESHOLD = 0.5  # the threshold of a label that never occurs


def multi_label_metrics(
    logits: np.ndarray, given: np.ndarray, thresholds: Sequence[float], classes: Sequence[str]
) -> dict[str, float]:
    """Metrics of predicted sets of labels, by scikit-learn, of logits and 0 or 1, float [rows,
    classes]. Means over classes leave out those that never occur; a warning names them.
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
    """The threshold with the best F1 for each class; 0.5 for a class that never occurs."""
    from sklearn import metrics

    thresholds = []
    for scores, truth in zip(sigmoid(logits).T, given.T > 0, strict=True):
        if not truth.any():
            thresholds.append(DEFAULT_THRESHOLD)
            continue
        precision, recall, candidates = metrics.precision_recall_curve(truth, scores)
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
        reached = candidates[int(np.argmax(f1[:-1]))]  # the last entry of `f1` has no threshold
        # Halfway to the next lower score, so that rounding moves no score across it.
        lower = scores[scores < reached].max(initial=0)
        thresholds.append(float((reached + lower) / 2))
    return tuple(thresholds)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Probabilities of logits, float32."""
    return (0.5 * (1 + np.tanh(0.5 * logits.astype(np.float64)))).astype(np.float32)
