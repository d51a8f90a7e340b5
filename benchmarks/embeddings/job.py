"""One piece of work of one contestant, in a process of its own.

    python -m benchmarks.embeddings.job JOB.json

The job names the side with its settings, a file of texts, and where to put their vectors. With
`pairs`, a file of them, the model is fine-tuned before; with `export` it is only exported.
"""

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.embeddings.data import Pairs
from benchmarks.embeddings.sides import open_side


def main(path: str) -> None:
    """Does the work."""
    job = json.loads(Path(path).read_text())
    side = open_side(job["settings"])
    if "export" in job:
        side.export(job["export"])
        return
    if "pairs" in job:
        side.fit(Pairs(*json.loads(Path(job["pairs"]).read_text())), **job["training"])
    np.save(job["vectors"], side.embed(json.loads(Path(job["texts"]).read_text())))


if __name__ == "__main__":
    main(sys.argv[1])
