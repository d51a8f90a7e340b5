"""Tables of speed compared with peers.

    python -m benchmarks.speed                              # every table, some two hours
    python -m benchmarks.speed --out speed                  # the same; what is done is kept there
    python -m benchmarks.speed --works encode finetune --precisions float32 --peers pytorch

The weights are random, of BERT-base's shape or of a 6-layer model's, made by transformers and read
by every contestant. Outputs are compared before anything is timed: a contestant whose outputs
differ from those of bert_tf, or whose process ends, is left out and named below the table. Each
contestant has a process of its own, and they take turns. A row gives the median time of a step and
its spread (first and third quartile), sequences a second, peak memory, and the ratio to the fastest
peer of the same precision. A table of all goals follows, and a picture with `--out`. Results
kept there are used again only by the same commit with the same settings. Results that were measured
with uncommitted changes, or outside of a checkout, are never used again.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.arguments import existing
from benchmarks.speed import peak
from benchmarks.speed.results import OURS, UNKNOWN, Measured, Result, draw, summary
from benchmarks.speed.turns import Contestant, Ended, take_turns
from benchmarks.speed.weights import make_weights
from benchmarks.speed.works import PEERS, PRECISIONS, WORKS, entries
from bert_tf.cli import command
from bert_tf.io.atomic import make_folder
from bert_tf.report import commit

# A difference between outputs above this, as a root mean square, is not noise of the precision.
TOLERANCES = {"float32": 1e-5, "bfloat16": 0.02}


def main() -> int:
    """Prints the tables; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.speed", __doc__)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument(
        "--vocab", type=existing, help="30,522 pieces for the texts; or made-up ones"
    )
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3, help="steps of a turn")
    parser.add_argument("--out", type=Path, help="keep results here, and take up what is there")
    return command.run("speed", parser, None, _work, "stopped; started again, it goes on")


def _work(arguments: argparse.Namespace) -> None:
    console = Console(width=130)
    vocabulary = arguments.vocab and str(arguments.vocab.resolve())
    settings = {name: getattr(arguments, name) for name in ("threads", "rounds", "steps")}
    settings |= {
        "peers": sorted(arguments.peers),
        "vocab": vocabulary,
        "commit": commit() or UNKNOWN,
    }
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.out or Path(scratch) / "results"
        make_folder(folder)
        for name in arguments.works:
            for precision in arguments.precisions:
                path = Result.path(folder, name, precision)
                if path.exists():
                    result = Result.load(path, settings)
                else:
                    measured = _measure(name, precision, Path(scratch), arguments)
                    result = Result(name, precision, settings=settings, **measured)
                    result.save(folder)
                results.append(result)
                console.print(result.table())
    console.print(summary(results))
    if arguments.out:
        draw(results, arguments.out / "speed.png")


def _measure(
    name: str, precision: str, scratch: Path, arguments: argparse.Namespace
) -> dict[str, Any]:
    """The fields of `Result` that are measured."""
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
        for module, extra in entries(work, precision, arguments.peers, arguments.threads)
    ]
    left_out = {}
    if work.serves:
        contestants, left_out = agreeing(contestants, TOLERANCES[precision])
    timed = list(contestants)
    if work.job == "encode":
        timed += [
            Contestant("benchmarks.speed.peak", settings | {"name": library}, scratch)
            for library in peak.LIBRARIES
        ]
    take_turns(timed, arguments.rounds, arguments.steps)
    share = None
    if work.job == "encode":
        ours = min(each.median() for each in contestants if each.name.startswith(OURS))
        operations = peak.encoder_operations(work.shape, work.batch, work.length)
        product = min(each.median() for each in timed[len(contestants) :])
        share = operations / ours / (peak.STEP_OPERATIONS / product)
    for each in timed:
        each.close()
    return {
        "contestants": [Measured(each.name, each.seconds, each.memory) for each in contestants],
        "share_of_peak": share,
        "left_out": left_out,
    }


def agreeing(
    contestants: Sequence[Contestant], tolerance: float
) -> tuple[list[Contestant], dict[str, str]]:
    """The contestants that compute what the first does, and why each of the others is left out.

    Args:
        contestants: ours first. The others are closed if they are left out.
        tolerance: the largest root mean square of a difference.

    Raises:
        Ended: the process of the first one ended.
    """
    first, *others = contestants
    first.turn(1)
    expected = first.outputs()
    kept, left_out = [first], {}
    for each in others:
        try:
            each.turn(1)
            outputs = each.outputs()
        except Ended:
            left_out[each.name] = "its process ended"
            continue
        difference = float(np.sqrt(np.mean((outputs - expected) ** 2)))
        if difference <= tolerance:
            kept.append(each)
            continue
        each.close()
        left_out[each.name] = f"it computes something else: it differs by {difference:.2g}"
    return kept, left_out


if __name__ == "__main__":
    sys.exit(main())
