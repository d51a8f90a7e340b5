"""What exports in 8-bit integers give and cost, compared with float32 and bfloat16.

    python -m benchmarks.int8 RUN [RUN …]

For finished runs of any task but pre-training. The table has the run's metric on its dev data, and
the rows per second of its encoder in the form of each export, on 8 rows of 128 tokens and on 1 row
of 55, measured in turns. Rows of the training data decide the ranges of the integers. `--base` also
measures the speed of BERT-base with random weights, none of whose products has to stay in float32.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table

from benchmarks.in_turns import medians
from benchmarks.speed import inputs
from bert_tf.cli import command
from bert_tf.config.run import FinetuningRun
from bert_tf.encoder.config import POLICIES, EncoderConfig
from bert_tf.encoder.encoder import INPUTS, Encoder
from bert_tf.errors import UserError
from bert_tf.export.calibration import rows_of_training
from bert_tf.export.served_model import Form, ServedModel
from bert_tf.runs.run_folder import RunFolder
from bert_tf.runs.scoring import trained

_SHAPES = ((8, 128), (1, 55))
_ROUNDS, _STEPS = 12, 3


def main() -> int:
    """Prints a row for each run and precision; returns the exit code, see `command.run`."""
    parser = command.module_parser("benchmarks.int8", __doc__)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    parser.add_argument(
        "--precisions", nargs="+", choices=(*POLICIES, "int8"), default=["float32", "int8"]
    )
    parser.add_argument("--base", action="store_true", help="BERT-base with random weights too")
    return command.run("int8", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    shapes = [f"{batch} x {length}, rows/s" for batch, length in _SHAPES]
    table = Table("model", "precision", "metric", "dev", *shapes)
    for path in arguments.runs:
        _compare(table, path, arguments.precisions)
    if arguments.base:
        keras.utils.set_random_seed(0)
        config = EncoderConfig(vocab_size=30522)
        rows = [_row(length, config.vocab_size) for length in range(16, 128, 4)]
        encoder = Encoder(config)
        served = {
            kind: ServedModel(encoder, Form(kind, calibration=rows if kind == "int8" else None))
            for kind in arguments.precisions
        }
        for kind, rates in _rates(served).items():
            table.add_row("BERT-base", kind, "", "", *rates)
    Console(width=100).print(table)


def _compare(table: Table, path: Path, precisions: Sequence[str]) -> None:
    run = RunFolder.open(path)
    if not isinstance(run.config, FinetuningRun):
        raise UserError(f"{path} is a {run.config.task} run; name a fine-tuned one")
    task, model = trained(run, "float32")
    rows = rows_of_training(task, model)
    dev = task.read(next(iter(task.files("dev").values())))
    metric = task.best_metric_of(run.config)
    served, scores = {}, {}
    for kind in precisions:
        form = Form(kind, calibration=rows if kind == "int8" else None)
        network = served[kind] = ServedModel(model, form)
        scores[kind] = task.score(model, model.with_network(network).infer(dev), dev)[metric]
    for kind, rates in _rates(served).items():
        table.add_row(path.name, kind, metric, f"{scores[kind]:.4f}", *rates)


def _rates(served: dict[str, ServedModel]) -> dict[str, list[str]]:
    """Rows a second of each shape."""
    found: dict[str, list[str]] = {kind: [] for kind in served}
    for batch, length in _SHAPES:
        steps = [_encoding(each, batch, length) for each in served.values()]
        for kind, seconds in zip(served, medians(steps, _ROUNDS, _STEPS), strict=True):
            found[kind].append(f"{batch / seconds:.2f}")
    return found


def _encoding(served: ServedModel, batch: int, length: int) -> Callable[[], Any]:
    """A step of a model's encoder, traced now."""
    encoder = getattr(served, "encoder", served)
    given = inputs.full_batch(batch, length, encoder.config.vocab_size)
    tensors = {name: tf.constant(value) for name, value in given.items()}
    encode = served.function(lambda features: encoder.encode(features).layers[-1])
    function = tf.function(encode, autograph=False).get_concrete_function(tensors)
    return lambda: function(tensors).numpy()


def _row(length: int, vocab_size: int) -> dict[str, np.ndarray]:
    """Random ids as a row of the encoder's inputs."""
    ids = np.random.default_rng(length).integers(1000, vocab_size, length, np.int32)
    return dict(zip(INPUTS, (ids, np.ones_like(ids), np.zeros_like(ids)), strict=True))


if __name__ == "__main__":
    sys.exit(main())
