"""The evaluations of a run: which was the best, and whether another one is worth waiting for."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

Metrics = Mapping[str, float]


def has_finite_loss(metrics: Metrics) -> bool:
    """Whether the loss is a finite number; True for metrics without a loss."""
    return math.isfinite(metrics.get("loss", 0.0))


def rank(metrics: Metrics, best_metric: str) -> tuple[float, float]:
    """The key that metrics are compared by: greater is better. Among equals the lower loss wins.

    Metrics of a model whose loss is not a finite number come last; they may be right by chance.
    """
    value = metrics[best_metric]
    if math.isnan(value) or not has_finite_loss(metrics):
        return -math.inf, -math.inf
    return value, -metrics.get("loss", 0.0)


def in_words(metrics: Metrics) -> str:
    """Metrics as one line of text."""
    return "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())


class Evaluations:
    """The results of all evaluations so far; a part of every checkpoint.

    Args:
        every: updates between evaluations.
        at_end: whether the last step is evaluated too.
        best_metric: the metric of which the highest is best.
        keep_best: whether the run ends with the weights of the best evaluation.
        patience: evaluations without a better one after which the run is over; None goes on.

    Attributes:
        results: (step, metrics) of each, in their order.
    """

    def __init__(
        self,
        every: int,
        at_end: bool = True,
        best_metric: str = "",
        keep_best: bool = False,
        patience: int | None = None,
    ):
        self.results: list[tuple[int, Metrics]] = []
        self.keep_best = keep_best
        self._every = every
        self._at_end = at_end
        self._best_metric = best_metric
        self._patience = patience

    def restore(self, results: Sequence[Any]) -> None:
        """Takes the results of an earlier session, as JSON gives them back."""
        self.results = [(step, metrics) for step, metrics in results]

    def add(self, step: int, metrics: Metrics) -> None:
        """Notes the result of an evaluation after `step` updates."""
        self.results.append((step, metrics))

    def due(self, step: int, total: int) -> bool:
        """Whether after `step` updates of `total` an evaluation is to be made that was not yet."""
        if self.results and self.results[-1][0] == step:
            return False
        if step == total:
            return self._at_end
        return step > 0 and step % self._every == 0

    def kept(self, step: int) -> int:
        """The step whose weights a run would end with that ended after `step`."""
        return self.results[self._best()][0] if self.keep_best and self.results else step

    def is_best(self, step: int) -> bool:
        """Whether the evaluation after `step` updates is the best so far."""
        return bool(self.results) and self.results[self._best()][0] == step

    @property
    def over(self) -> bool:
        """Whether so many evaluations brought nothing better that the run ends."""
        if self._patience is None or not self.results:
            return False
        return len(self.results) - 1 - self._best() >= self._patience

    def _best(self) -> int:
        ranks = [rank(metrics, self._best_metric) for _, metrics in self.results]
        return ranks.index(max(ranks))
