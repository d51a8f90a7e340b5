"""Calls in one process that take turns: what slows the machine down slows all of them down."""

import statistics
import time
from collections.abc import Callable, Sequence


def medians(
    steps: Sequence[Callable[[], object]], rounds: int, calls: int = 1, warm_up: int = 1
) -> list[float]:
    """The median seconds of a call of each step.

    Args:
        steps: what is timed, in this order.
        rounds: timed turns of each.
        calls: how often a step is called in a turn.
        warm_up: turns of each step before the timed ones.
    """
    seconds: list[list[float]] = [[] for _ in steps]
    for number in range(warm_up + rounds):
        for step, taken in zip(steps, seconds, strict=True):
            for _ in range(calls):
                began = time.perf_counter()
                step()
                if number >= warm_up:
                    taken.append(time.perf_counter() - began)
    return [statistics.median(taken) for taken in seconds]
