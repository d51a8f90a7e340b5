"""Strings to answers, compared with Hugging Face: throughput, latency, cold start, memory.

    python -m benchmarks.serving --checkpoint FOLDER --data DATA
    python -m benchmarks.serving --checkpoint FOLDER --data DATA --quick

FOLDER is a Hugging Face checkpoint, which Hugging Face runs on PyTorch; DATA holds
`squad/dev-v1.1.json` and `wikitext2/valid.txt`.
Every contestant has the same weights, with a random head where the checkpoint has none, and is
given the same texts in the same order, in a process of its own; they take turns. Ours is the
export: in a process that imports only TensorFlow and tensorflow-text, as it is and with the
settings of docs/how_to/serving.md, and in one that calls it through TensorFlow's C library.
Theirs is the model with its own fast tokenizer, padded to the longest of each batch, and for
question answering the usual decoding of the n best. In question answering, the windows of a long
context start 128 tokens apart on both sides.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.allocation import environment
from benchmarks.arguments import existing
from benchmarks.serving.texts import FILES, TASKS, texts
from benchmarks.speed.results import reached
from benchmarks.speed.turns import Contestant, take_turns
from benchmarks.speed.works import ways
from bert_tf.cli import command
from bert_tf.console import logger
from bert_tf.errors import UserError

PRECISIONS = ("float32", "bfloat16")
# Answers a second with the best size of batch, ours over theirs: must and aim.
GOALS = {
    ("classification", "float32"): (1.35, 1.45),
    ("classification", "bfloat16"): (1.25, 1.45),
    ("question_answering", "float32"): (1.4, 1.6),
    ("question_answering", "bfloat16"): (1.5, 1.8),
}
# Batch -> steps that are timed.
STEPS = {1: 300, 8: 120, 32: 100}
QUICK_STEPS = {1: 20, 8: 5, 32: 3}
ROUNDS = 10
OURS, THEIRS = "benchmarks.serving.saved_model", "benchmarks.serving.pytorch"
C_LIBRARY = "benchmarks.serving.session"


def main() -> int:
    """Prints three tables for each task and precision.

    Returns:
        The exit code, see `bert_tf.cli.command`.
    """
    parser = command.module_parser("benchmarks.serving", __doc__)
    parser.add_argument("--checkpoint", type=existing, required=True, help="a Hugging Face folder")
    parser.add_argument("--data", type=existing, required=True, help="holds squad and wikitext2")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--batches", nargs="+", type=int, choices=STEPS, default=list(STEPS))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cold", type=int, default=5, help="cold starts of each (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="few steps, one cold start")
    return command.run("serving", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    for task in arguments.tasks:
        if not (arguments.data / FILES[task]).is_file():
            raise UserError(f"--data {arguments.data} holds no {FILES[task]}")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for task in arguments.tasks:
            weights, asked = scratch / task, scratch / f"{task}.json"
            _run("benchmarks.serving.pytorch", "write", task, arguments.checkpoint, weights)
            asked.write_text(json.dumps(texts(task, arguments.data)))
            for precision in arguments.precisions:
                _compare(task, precision, weights, asked, scratch, arguments)


def _run(module: str, *given: object) -> None:
    """Runs a module in another process, so that this one stays small and imports no library."""
    done = subprocess.run([sys.executable, "-m", module, *map(str, given)])
    if done.returncode:
        raise UserError(f"{module} failed, as said above")


def _compare(
    task: str,
    precision: str,
    weights: Path,
    asked: Path,
    scratch: Path,
    arguments: argparse.Namespace,
) -> None:
    export = scratch / f"{task}-{precision}"
    _run("benchmarks.serving.exporting", weights, export, task, precision)
    entries = [
        *((OURS, way | {"model": str(export)}) for way in ways(arguments.threads)),
        (C_LIBRARY, {"name": "C library", "model": str(export)}),
        (THEIRS, {"name": "PyTorch", "model": str(weights)}),
    ]
    settings = {
        "task": task,
        "precision": precision,
        "texts": str(asked),
        "threads": arguments.threads,
    }
    title = f"{task.replace('_', ' ')}, {precision}"
    shown = Table("contestant", "batch", "answers/s", "p50 ms", "p99 ms", "GiB", "ratio", "same")
    shown.title = title
    rates: dict[str, dict[float, int]] = {own["name"]: {} for _, own in entries}
    for batch in arguments.batches:
        for name, rate, cells in _rows(
            entries, settings | {"batch": batch}, scratch, arguments.quick
        ):
            rates[name][rate] = batch
            shown.add_row(name, str(batch), f"{rate:.1f}", *cells)
        logger.info(f"{title}, batch {batch}: done")
    best = _best(rates, GOALS[task, precision])
    best.title = f"{title}, the best size of batch"
    cold = Table("contestant", "process to answer, s", "load to answer, s", title=f"{title}, cold")
    for row in _cold(entries, settings | {"batch": 1}, 1 if arguments.quick else arguments.cold):
        cold.add_row(*row)
    for table in (shown, best, cold):
        Console(width=100).print(table)


def _rows(
    entries: list, settings: dict, scratch: Path, quick: bool
) -> list[tuple[str, float, tuple[str, ...]]]:
    """Each contestant's name, answers a second with one size of batch, and what else is shown."""
    contestants = [Contestant(module, settings | own, scratch) for module, own in entries]
    batch = settings["batch"]
    steps, rounds = (QUICK_STEPS[batch], 1) if quick else (STEPS[batch] // ROUNDS, ROUNDS)
    take_turns(contestants, rounds, steps)
    outputs = [each.outputs() for each in contestants]
    theirs = contestants[-1].median()
    rows = []
    for each, found in zip(contestants, outputs, strict=True):
        half, most = np.percentile(each.seconds, [50, 99]) * 1e3
        rows.append(
            (
                each.name,
                batch * len(each.seconds) / sum(each.seconds),
                (
                    f"{half:.1f}",
                    f"{most:.1f}",
                    f"{each.memory:.2f}",
                    f"{theirs / each.median():.2f}",
                    f"{100 * np.mean(found == outputs[-1]):.1f} %",
                ),
            )
        )
        each.close()
    return rows


def _best(rates: dict[str, dict[float, int]], goal: tuple[float, float]) -> Table:
    """Each contestant's best batch size; `rates` has answers a second -> batch, theirs last."""
    best = {name: max(each.items()) for name, each in rates.items()}
    *ours, theirs = best
    table = Table("contestant", "batch", "answers/s", "ratio", "goal")
    for name, (rate, batch) in best.items():
        ratio = rate / best[theirs][0]
        outcome = ""
        if name in ours:
            outcome = reached(ratio, *goal)
        table.add_row(name, str(batch), f"{rate:.1f}", f"{ratio:.2f}", outcome)
    return table


def _cold(entries: list, settings: dict, times: int) -> list[tuple[str, str, str]]:
    """Seconds from the start of a process, and from loading, to the answer to one text."""
    seconds: dict[str, list[tuple[float, float]]] = {own["name"]: [] for _, own in entries}
    for _ in range(times):
        for module, own in entries:
            began = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-m", module, json.dumps(settings | own | {"cold": True})],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                env=environment(own.get("environment")),
            )
            answer = json.loads(done.stdout.splitlines()[-1])
            # The time that the process takes to end does not count.
            whole = time.perf_counter() - began - (time.time() - answer["answered"])
            seconds[own["name"]].append((whole, answer["seconds"]))
    medians = {name: np.median(each, axis=0) for name, each in seconds.items()}
    return [(name, f"{whole:.2f}", f"{load:.2f}") for name, (whole, load) in medians.items()]


if __name__ == "__main__":
    sys.exit(main())
