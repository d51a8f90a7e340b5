"""What both sides have in common: a job for the turns, or one cold start."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.serving.texts import Batches
from benchmarks.speed.turns import Job, serve

Answerer = Callable[[dict[str, list[str]]], list[str]]


def run(load: Callable[[dict[str, Any]], Answerer]) -> None:
    """Serves turns, or answers once and prints when and how long it took.

    Args:
        load: makes a function that answers a batch of texts, from the settings.
    """
    settings = json.loads(sys.argv[1])
    if not settings.get("cold"):
        serve(lambda settings: _job(load(settings), settings))
        return
    batch = Batches(settings["texts"], settings["batch"]).next()
    began = time.perf_counter()
    load(settings)(batch)
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "answered": time.time()}), flush=True)


def _job(answer: Answerer, settings: dict[str, Any]) -> Job:
    batches, answers = Batches(settings["texts"], settings["batch"]), []
    return Job(lambda: answers.extend(answer(batches.next())), lambda: np.array(answers))
