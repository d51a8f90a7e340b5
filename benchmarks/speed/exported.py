"""The export that a contestant of ours answers with, and what the contestant does with it."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.answering import answering
from benchmarks.speed.turns import Job

_TASKS = {"encode": "encoding", "classify": "classification"}
_OUTPUTS = {"encode": "last_layer", "classify": "probabilities"}

# Takes named inputs, and gives a function that computes all outputs for them.
Make = Callable[[dict[str, Any]], Callable[[], dict[str, Any]]]


@contextlib.contextmanager
def exported(settings: dict[str, Any]) -> Iterator[str]:
    """The folder of the export. Another process writes it, to keep its memory out of serving's."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch) / "model")
        given = settings["weights"], folder, _TASKS[settings["work"]], settings["precision"]
        subprocess.run([sys.executable, "-m", "benchmarks.serving.exporting", *given], check=True)
        yield folder


def job(settings: dict[str, Any], make: Make) -> Job:
    """The job that `settings` names, with the output of the export that the work compares."""
    name = _OUTPUTS[settings["work"]]

    def of_inputs(given: dict[str, Any]) -> Callable[[], np.ndarray]:
        compute = make(given)
        return lambda: np.asarray(compute()[name])

    return answering(settings, of_inputs)
