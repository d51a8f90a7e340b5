"""Memory of a process that answers batches of ever new shapes, with and without oneDNN.

    python -m benchmarks.memory_by_shapes saved_models/vectors --minutes 6

Batches of 1 to 32 texts of 1 to 150 words are answered as `bert-tf predict` answers them. oneDNN
compiles kernels for each shape of a product, and TensorFlow keeps up to 1,024 of each kind for each
inter-op thread: `MklPrimitiveFactory` in `tensorflow/core/util/mkl_util.h`. The table shows how the
memory grows until these kernels exist. Each of the two settings has a process of its own.
"""

import argparse
import multiprocessing
import os
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from rich.console import Console
from rich.table import Table

from benchmarks.memory import resident_bytes
from benchmarks.served_load import WORDS
from bert_tf.cli import command
from bert_tf.errors import UserError

_ROWS, _MOST_WORDS = 32, 150
_SAMPLES = 10


def main(argv: list[str] | None = None) -> int:
    """Prints the table; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.memory_by_shapes", __doc__)
    parser.add_argument("saved_model", help="an export with one input, a text")
    parser.add_argument("--minutes", type=float, default=6.0, help="(%(default)s)")
    return command.run("memory_by_shapes", parser, argv, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    table = Table("oneDNN", "seconds", "batches", "shapes", "texts a second", "MiB")
    context = multiprocessing.get_context("spawn")
    for is_on in (True, False):
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            job = pool.submit(measure, arguments.saved_model, arguments.minutes * 60, is_on)
            for row in job.result():
                table.add_row("on" if is_on else "off", *row)
    Console(width=90).print(table)


def measure(path: str, seconds: float, is_on: bool) -> list[tuple[str, ...]]:
    """A line for each tenth of the time."""
    from bert_tf.asking.session import SessionModel
    from bert_tf.dependencies import prepare_to_serve

    os.environ["TF_ENABLE_ONEDNN_OPTS"] = str(int(is_on))
    prepare_to_serve()
    model = SessionModel.load(path)
    if model is None:
        raise UserError(f"TensorFlow's C library cannot run {path}; name a SavedModel of strings")
    (name,) = model.ranks("serving_default")
    model.ask("serving_default", [{name: "once"}])  # the first answer takes longer
    source, shapes, batches, texts = random.Random(0), set(), 0, 0
    found: list[tuple[str, ...]] = []
    began = time.monotonic()
    while len(found) < _SAMPLES:
        rows, words = source.randint(1, _ROWS), source.randint(1, _MOST_WORDS)
        batch = [{name: " ".join(source.choices(WORDS, k=words))} for _ in range(rows)]
        model.ask("serving_default", batch)
        shapes.add((rows, words))
        batches, texts = batches + 1, texts + rows
        passed = time.monotonic() - began
        if passed > seconds * (len(found) + 1) / _SAMPLES:
            counts = f"{passed:.0f}", f"{batches:,}", f"{len(shapes):,}", f"{texts / passed:.0f}"
            found.append((*counts, f"{resident_bytes() >> 20:,}"))
    return found


if __name__ == "__main__":
    sys.exit(main())
