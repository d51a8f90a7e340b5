"""How far probabilities and metrics can be trusted: calibration, and the bootstrap.

Source: Guo et al., "On Calibration of Modern Neural Networks" (ICML 2017, arXiv 1706.04599).
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bert_tf.console import logger
from bert_tf.errors import UserError

BINS = 15  # bins of probabilities, as in the paper
_MOST = np.log(100.0)  # the logarithm of the highest temperature; the lowest is as far below 1
RESAMPLES = 1000  # how many samples a bootstrap draws
Draw = Callable[[int], np.ndarray]  # given the number of rows, draws some of them: int [n]
# The values that `calibrate` returns, which are also in the metrics of a run.
CALIBRATION = ("temperature", "calibration_error_before", "calibration_error_after")


def reliability(
    confidence: np.ndarray, right: np.ndarray, bins: int = BINS
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """How often predictions are right (bool [n]), compared with their probability (float [n]).

    Bin i is (i / bins, (i + 1) / bins]. The results for each bin are the number of predictions,
    int64 [bins]; their mean probability, and the share of right ones, float64 [bins], 0 if empty;
    and the expected calibration error: the mean distance between these two over all predictions.
    """
    from sklearn.calibration import calibration_curve

    inner = np.linspace(0, 1, bins + 1)[1:-1]
    counts = np.bincount(np.searchsorted(inner, confidence), minlength=bins)
    sure, correct = np.zeros(bins), np.zeros(bins)
    # `calibration_curve` leaves out empty bins.
    filled = calibration_curve(right.astype(int), confidence, n_bins=bins, pos_label=1)
    correct[counts > 0], sure[counts > 0] = filled
    error = float(counts @ np.abs(sure - correct) / max(counts.sum(), 1))
    return counts, sure, correct, error


def graded(logits: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probability of each prediction, float [n], and whether it is right, bool [n]. If targets
    are int [rows], the most probable class of each row is a prediction. If they are float
    [rows, classes] of 0 and 1, each label is one, given or not, with a threshold of 0.5.
    """
    from scipy import special

    if targets.ndim == 1:
        probabilities = special.softmax(logits, axis=1)
        return probabilities.max(axis=1), logits.argmax(axis=1) == targets
    return special.expit(np.abs(logits)).ravel(), ((logits >= 0) == (targets > 0)).ravel()


def best_temperature(logits: np.ndarray, targets: np.ndarray, now: float = 1.0) -> float:
    """The temperature, from 0.01 to 100, with the greatest likelihood of the targets; see `graded`.
    If all predictions are right, a lower one is always likelier, and the result is `now`.
    """
    from scipy import optimize, special

    if graded(logits, targets)[1].all():
        logger.warning(
            f"all {len(targets)} rows are right, so no temperature is best, and it stays as it is"
        )
        return now
    logits = logits.astype(np.float64)

    def loss(exponent: float) -> float:
        scaled = logits / np.exp(exponent)
        if targets.ndim == 1:
            return -special.log_softmax(scaled, axis=1)[np.arange(len(targets)), targets].mean()
        return (np.logaddexp(0, scaled) - scaled * targets).mean()

    found = optimize.minimize_scalar(loss, bounds=(-_MOST, _MOST), options={"xatol": 1e-6})
    if found.x > 0.99 * _MOST:
        logger.warning("the model is no better than chance on these rows, at any temperature")
    return float(np.exp(found.x))


def check_targets(targets: np.ndarray) -> None:
    """Raises UserError if the targets have fewer than two labels; -1 does not count as a label."""
    values = np.unique(targets[targets >= 0])
    if len(values) < 2:
        found = "no label" if not len(values) else "the same label for all rows"
        raise UserError(f"the data have {found}; calibrate on rows of two labels or more")


def bootstrap(score: Any, model: Any, predictions: Any, rows: Any) -> dict[str, np.ndarray]:
    """Metrics of rows drawn with replacement, float [RESAMPLES]; the draws are always the same."""
    source, found = np.random.default_rng(0), []
    logger.disabled = True  # a sample may lack a label
    try:
        for _ in range(RESAMPLES):
            drawn = model.resampled(predictions, rows, lambda n: source.integers(n, size=n))
            found.append(score(model, *drawn))
    finally:
        logger.disabled = False
    names = [name for name in found[0] if "threshold" not in name]  # a threshold is not a metric
    return {name: np.array([each[name] for each in found]) for name in names}


def intervals(samples: Mapping[str, np.ndarray], confidence: float) -> dict[str, float]:
    """The ends `name_low` and `name_high` of the central interval of each metric's samples."""
    ends = {"low": (1 - confidence) / 2, "high": (1 + confidence) / 2}
    return {
        f"{name}_{end}": float(np.nanquantile(values, share).round(12))
        for name, values in samples.items()
        for end, share in ends.items()
    }
