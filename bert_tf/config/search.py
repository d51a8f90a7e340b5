"""The section `search`, and ranges of values under `train`."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from bert_tf.config.section import PLACED, Count, Positive, Section, Seed


class SearchConfig(Section):
    """A search with Optuna, instead of a grid."""

    trials: Count = 20
    """Number of trials, of all workers together. Raise it to go on with a finished search."""
    storage: Annotated[str, Field(min_length=1), PLACED] | None = None
    """Where Optuna keeps the trials: the URL of a database, such as `sqlite:///trials.db`, or the
    path of a journal, a file that several machines can share. Relative paths start from the working
    directory. Workers with the same storage and configuration share the trials; each has an --out
    of its own. null is `search.db` in the run folder."""
    seed: Seed = 0
    """Seed of the settings that are tried."""
    prune: bool = True
    """End a trial early if its metric on the dev data is below the median of the earlier trials
    after as many evaluations. The first five trials are never ended."""


class Range(Section):
    """Numbers from `low` to `high`, of which a search tries some."""

    low: int | float
    high: int | float
    log: bool = False
    """Try small numbers as often as large ones: 1e-5 to 1e-4 as often as 1e-4 to 1e-3."""
    step: int | Positive | None = None
    """Distance between the numbers to try; null is 1 for whole numbers, and any for others."""

    @model_validator(mode="after")
    def _goes_up(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low {self.low:g} is not below high {self.high:g}; correct them")
        if self.log and (self.low <= 0 or self.step is not None):
            raise ValueError("log requires that low is above 0 and that there is no step")
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise ValueError(f"step {self.step:g} does not fit between low and high; correct it")
        return self
