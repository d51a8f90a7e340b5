"""How often a model is right compared with how sure it is, and which classes it confuses.

Source: Guo et al., "On Calibration of Modern Neural Networks" (ICML 2017, arXiv 1706.04599):
reliability diagrams and the expected calibration error, over bins of equal width.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

BINS = 10
# Classes that a table of confusions has room for.
_MOST_CLASSES = 24
_OTHERS = "(all others)"


class Calibration(NamedTuple):
    """Confidence and correctness of predictions in bins; bin i is (i / bins, (i + 1) / bins].

    Attributes:
        counts: int64 [bins], predictions in each.
        confidence: float64 [bins], their mean probability; 0 in an empty bin.
        accuracy: float64 [bins], the share of them that is right; likewise.
        error: the expected calibration error: the mean distance of the two, by predictions.
    """

    counts: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    error: float

    @classmethod
    def of(cls, confidence: np.ndarray, right: np.ndarray, bins: int = BINS) -> "Calibration":
        """The calibration of predictions: their probabilities, float [predictions], and whether they
        are right, bool [predictions].
        """
        from sklearn.calibration import calibration_curve

        inner = np.linspace(0, 1, bins + 1)[1:-1]
        counts = np.bincount(np.searchsorted(inner, confidence), minlength=bins)
        sure, correct = np.zeros(bins), np.zeros(bins)
        # It leaves out empty bins.
        filled = calibration_curve(right.astype(int), confidence, n_bins=bins, pos_label=1)
        correct[counts > 0], sure[counts > 0] = filled
        error = float(counts @ np.abs(sure - correct) / max(counts.sum(), 1))
        return cls(counts, sure, correct, error)


class Confusions(NamedTuple):
    """What was given, and what was predicted.

    Attributes:
        names: the classes.
        counts: int64 [classes given, classes predicted].
    """

    names: tuple[str, ...]
    counts: np.ndarray

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        given: np.ndarray,
        predicted: np.ndarray,
        most: int = _MOST_CLASSES,
    ) -> "Confusions":
        """The confusions of int [rows] by int [rows].

        Where there are more classes than `most`, the least frequent ones become one.
        """
        from sklearn.metrics import confusion_matrix

        classes = len(names)
        counts = confusion_matrix(given, predicted, labels=range(classes))
        if classes <= most:
            return cls(tuple(names), counts)
        frequent = np.argsort(-(counts.sum(axis=0) + counts.sum(axis=1)), kind="stable")
        kept = np.sort(frequent[: most - 1])
        place = np.full(classes, most - 1)
        place[kept] = np.arange(most - 1)
        merged = np.zeros((most, most), np.int64)
        np.add.at(merged, (place[:, None], place[None, :]), counts)
        return cls((*(names[i] for i in kept), _OTHERS), merged)
