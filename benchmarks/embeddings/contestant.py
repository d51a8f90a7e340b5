"""A contestant whose embedding is timed: a batch of texts a step, the same batches for all."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.embeddings.sides import open_side
from benchmarks.speed.turns import Job, serve


def prepare(settings: dict[str, Any]) -> Job:
    """The job: `settings` has a file of `texts`, a `batch`, and what `open_side` takes."""
    side, batch = open_side(settings), settings["batch"]
    texts = json.loads(Path(settings["texts"]).read_text())
    texts *= -(-batch // len(texts))  # at least one batch
    starts = itertools.cycle(range(0, len(texts) - batch + 1, batch))
    vectors: list[np.ndarray] = []

    def step() -> None:
        start = next(starts)
        vectors[:] = [side.embed(texts[start : start + batch])]

    return Job(step, lambda: vectors[0])


if __name__ == "__main__":
    serve(prepare)
