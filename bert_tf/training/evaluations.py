"""The evaluations of a run: which was the best, and whether training should go on."""

import dataclasses
import math
from collections.abc import Mapping

Metrics = Mapping[str, float]


def has_finite_loss(metrics: Metrics) -> bool:
    """Whether the loss is a finite number; True for metrics without a loss."""
    return math.isfinite(metrics.get("loss", 0.0))


def rank(metrics: Metrics, best_metric: str) -> tuple[float, float]:
    """The key by which metrics are compared: greater is better. Among equals the lower loss wins.
    Where the loss is not finite, the model comes last; other metrics may look good by chance.
    """
    value = metrics[best_metric]
    if math.isnan(value) or not has_finite_loss(metrics):
        return -math.inf, -math.inf
    return value, -metrics.get("loss", 0.0)


def in_words(metrics: Metrics) -> str:
    """Metrics in one line."""
    return "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())


@dataclasses.dataclass(eq=False)
class Evaluations:
    """The results of all evaluations so far; a part of every checkpoint."""

    every: int  # updates between evaluations
    at_end: bool = True
    best_metric: str = ""  # the higher, the better
    keep_best: bool = False  # the run ends with the weights of the best evaluation
    patience: int | None = None
    at_start: bool = False
    results: list[tuple[int, Metrics]] = dataclasses.field(default_factory=list)  # by step
    stopped: bool = False  # by a callback

    def add(self, step: int, metrics: Metrics) -> None:
        self.results.append((step, metrics))

    def due(self, step: int, total: int) -> bool:
        if self.results and self.results[-1][0] == step:
            return False
        if step == total or self.stopped:
            return self.at_end
        return step % self.every == 0 and (step > 0 or self.at_start)

    def kept(self, step: int) -> int:
        """The step whose weights the run would keep if it ended after `step`."""
        return self.results[self._best()][0] if self.keep_best and self.results else step

    def is_best(self, step: int) -> bool:
        return bool(self.results) and self.results[self._best()][0] == step

    @property
    def over(self) -> bool:
        """Whether a callback has ended the run, or `patience` evaluations were no better."""
        if self.stopped:
            return True
        if self.patience is None or not self.results:
            return False
        return len(self.results) - 1 - self._best() >= self.patience

    def _best(self) -> int:
        ranks = [rank(metrics, self.best_metric) for _, metrics in self.results]
        return ranks.index(max(ranks))
