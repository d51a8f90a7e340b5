"""The job of a contestant that answers, whatever computes its answers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.speed import inputs
from benchmarks.speed.turns import Job
from benchmarks.speed.weights import VOCABULARY


def answering(
    settings: dict[str, Any], make: Callable[[dict[str, Any]], Callable[[], np.ndarray]]
) -> Job:
    """The job that `settings` names.

    Args:
        settings: of the contestant; the work is encode or classify.
        make: takes the encoder's inputs, int32 [batch, length] under their names, or a list of
            texts under the name "text"; gives a function that computes the outputs for them.
    """
    computes, last = [], []

    def resize(rows: int, length: int) -> None:
        computes[:] = [make(inputs.full_batch(rows, length, VOCABULARY))]

    def step() -> None:
        last[:] = [computes[0]()]

    if settings["work"] == "classify":
        texts = inputs.texts(settings["vocabulary_file"], settings["batch"])
        computes.append(make({"text": texts}))
        return Job(step, lambda: last[0])
    resize(settings["batch"], settings["length"])
    return Job(step, lambda: last[0], resize)
