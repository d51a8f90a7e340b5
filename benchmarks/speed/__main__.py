"""Tables of speed beside the peers.

    python -m benchmarks.speed                              # every table, some two hours
    python -m benchmarks.speed --out speed                  # the same; what is done is kept there
    python -m benchmarks.speed --works encode finetune --precisions float32 --peers pytorch

The weights are random, of BERT-base's shape or of a 6-layer model's, made by transformers and read
by every contestant. Outputs are compared before anything is timed. Each contestant has a process
of its own, and they take turns. A row gives the median time of a step and its spread (first and
third quartile), sequences a second, peak memory, and the ratio to the fastest peer of the same
precision. In the end a table of all goals, and a picture with `--out`.
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.speed import peak
from benchmarks.speed.results import Measured, Result, draw, summary
from benchmarks.speed.turns import Contestant, take_turns
from benchmarks.speed.weights import make_weights
from benchmarks.speed.works import PEERS, PRECISIONS, WORKS, entries
from bert_tf.files import make_folder

# A difference between outputs above this, as a root mean square, is not noise of the precision.
TOLERANCES = {"float32": 1e-5, "bfloat16": 0.02}


def main() -> None:
    """Prints a table for each work and precision, and one of all goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--vocab", type=Path, help="30,522 pieces for the texts; or made-up ones")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3, help="steps of a turn")
    parser.add_argument("--out", type=Path, help="keep results here, and take up what is there")
    arguments = parser.parse_args()
    console = Console(width=110)
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.out or Path(scratch) / "results"
        make_folder(folder)
        for name in arguments.works:
            for precision in arguments.precisions:
                path = Result.path(folder, name, precision)
                if not path.exists():
                    _measure(name, precision, Path(scratch), arguments).save(folder)
                results.append(Result.load(path))
                console.print(results[-1].table())
    console.print(summary(results))
    if arguments.out:
        draw(results, arguments.out / "speed.png")


def _measure(name: str, precision: str, scratch: Path, arguments: argparse.Namespace) -> Result:
    work = WORKS[name]
    weights = scratch / f"{work.job}-{work.shape}"
    if not weights.exists():
        make_weights(weights, work.job, work.shape, arguments.vocab)
    settings = {
        "work": work.job,
        "precision": precision,
        "batch": work.batch,
        "length": work.length,
        "threads": arguments.threads,
        "weights": str(weights),
        "vocabulary_file": str(weights / "vocab.txt"),
    }
    contestants = [
        Contestant(f"benchmarks.speed.{module}", settings | extra, scratch)
        for module, extra in entries(work, precision, arguments.peers)
    ]
    timed = list(contestants)
    if work.job == "encode":
        timed.append(Contestant("benchmarks.speed.peak", settings | {"name": "peak"}, scratch))
    take_turns(timed, arguments.rounds, arguments.steps)
    if work.serves:
        _check(contestants, TOLERANCES[precision])
    measured = [Measured(each.name, each.seconds, each.memory) for each in contestants]
    result, share = Result(name, precision, measured), None
    if work.job == "encode":
        operations = peak.encoder_operations(work.shape, work.batch, work.length)
        share = operations / result.ours.median / (2 * peak.SIZE**3 / timed[-1].median())
    for each in timed:
        each.close()
    return Result(name, precision, measured, share)


def _check(contestants: list[Contestant], tolerance: float) -> None:
    expected, *others = [each.outputs() for each in contestants]
    for each, outputs in zip(contestants[1:], others, strict=True):
        difference = np.sqrt(np.mean((outputs - expected) ** 2))
        if not difference <= tolerance:
            raise SystemExit(f"{each.name} computes something else: it differs by {difference:.2g}")


if __name__ == "__main__":
    main()
