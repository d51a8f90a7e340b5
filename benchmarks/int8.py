"""What exports in 8-bit integers give and cost, compared with float32 and bfloat16.

    python -m benchmarks.int8 RUN [RUN …] [--base] [--openvino]

For finished runs of any task but pre-training. The table has the run's metric on its dev data, and
the rows per second of its encoder in the form of each export, on 8 rows of 128 tokens and on 1 row
of 55, measured in turns. Rows of the training data decide the ranges of the integers. `--base` also
measures the speed of BERT-base with random weights, none of whose products has to stay in float32.
`--openvino` adds OpenVINO with the same encoder; NNCF decides its integers by the same rows. The
column "error" is the root mean square of the difference to our float32 in the last layer of the 8
rows, as a share of the root mean square of that layer.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table

from benchmarks.in_turns import medians
from benchmarks.speed import inputs
from bert_tf.checkpoints import conversion
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
# A step gives the last layer, float32 [batch, length, hidden_size].
Step = Callable[[], np.ndarray]
# Makes the step of an encoder from a batch of its inputs.
Steps = Callable[[Mapping[str, np.ndarray]], Step]


def main() -> int:
    """Prints a row for each run and precision; returns the exit code, see `command.run`."""
    parser = command.module_parser("benchmarks.int8", __doc__)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    parser.add_argument(
        "--precisions", nargs="+", choices=(*POLICIES, "int8"), default=["float32", "int8"]
    )
    parser.add_argument("--base", action="store_true", help="BERT-base with random weights too")
    parser.add_argument("--openvino", action="store_true", help="also OpenVINO, with NNCF's int8")
    return command.run("int8", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    shapes = [f"{batch} x {length}, rows/s" for batch, length in _SHAPES]
    table = Table("model", "precision", "metric", "dev", *shapes, "error")
    for path in arguments.runs:
        _compare(table, path, arguments)
    if arguments.base:
        keras.utils.set_random_seed(0)
        config = EncoderConfig(vocab_size=30522)
        rows = [_row(length, config.vocab_size) for length in range(16, 128, 4)]
        encoder = Encoder(config)
        forms = {kind: _form(kind, rows) for kind in arguments.precisions}
        served = {kind: ServedModel(encoder, form) for kind, form in forms.items()}
        for kind, cells in _measured(encoder, served, rows, arguments.openvino).items():
            table.add_row("BERT-base", kind, "", "", *cells)
    Console(width=110).print(table)


def _compare(table: Table, path: Path, arguments: argparse.Namespace) -> None:
    run = RunFolder.open(path)
    if not isinstance(run.config, FinetuningRun):
        raise UserError(f"{path} is a {run.config.task} run; name a fine-tuned one")
    task, model = trained(run, "float32")
    rows = rows_of_training(task, model)
    dev = task.read(next(iter(task.files("dev").values())))
    metric = task.best_metric_of(run.config)
    served, scores = {}, {}
    for kind in arguments.precisions:
        network = served[kind] = ServedModel(model, _form(kind, rows))
        score = task.score(model, model.with_network(network).infer(dev), dev)[metric]
        scores[kind] = f"{score:.4f}"
    for kind, cells in _measured(model.encoder, served, rows, arguments.openvino).items():
        table.add_row(path.name, kind, metric, scores.get(kind, ""), *cells)


def _form(kind: str, rows: Sequence[Mapping[str, np.ndarray]]) -> Form:
    return Form(kind, calibration=rows if kind == "int8" else None)


def _measured(
    encoder: Encoder,
    served: Mapping[str, ServedModel],
    rows: Sequence[Mapping[str, np.ndarray]],
    openvino: bool,
) -> dict[str, list[str]]:
    """For each of `served`, and for OpenVINO: rows a second of each shape, and the error."""
    makers: dict[str, Steps] = {kind: _of_export(each) for kind, each in served.items()}
    if openvino:
        with tempfile.TemporaryDirectory() as folder:
            for kind in served:
                makers[f"OpenVINO, {kind}"] = _of_openvino(encoder, kind, rows, Path(folder))
    found: dict[str, list[str]] = {name: [] for name in makers}
    errors: dict[str, float] = {}
    for batch, length in _SHAPES:
        given = inputs.full_batch(batch, length, encoder.config.vocab_size)
        steps = [make(given) for make in makers.values()]
        if not errors:
            exact = _of_export(ServedModel(encoder, Form("float32")))(given)()
            errors = {name: _error(step(), exact) for name, step in zip(makers, steps, strict=True)}
        for name, seconds in zip(makers, medians(steps, _ROUNDS, _STEPS), strict=True):
            found[name].append(f"{batch / seconds:.2f}")
    return {name: [*rates, f"{100 * errors[name]:.1f} %"] for name, rates in found.items()}


def _error(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.sqrt(np.square(found - exact).mean() / np.square(exact).mean()))


def _of_export(served: ServedModel) -> Steps:
    """The steps of an encoder as an export holds it, traced for each batch."""
    encoder = getattr(served, "encoder", served)
    encode = served.function(lambda features: encoder.encode(features).restore())

    def make(given: Mapping[str, np.ndarray]) -> Step:
        tensors = {name: tf.constant(value) for name, value in given.items()}
        function = tf.function(encode, autograph=False).get_concrete_function(tensors)
        return lambda: tf.cast(function(tensors), tf.float32).numpy()

    return make


def _of_openvino(
    encoder: Encoder, kind: str, rows: Sequence[Mapping[str, np.ndarray]], folder: Path
) -> Steps:
    """The steps of the same encoder in OpenVINO; "int8" is quantized by NNCF, for transformers."""
    import nncf
    import openvino

    from benchmarks.speed import converted
    from benchmarks.speed.openvino_runtime import compiled

    weights, model = folder / "weights", folder / "model.xml"
    if not model.exists():
        conversion.save(encoder, weights, "huggingface")
        converted.write("openvino", {"work": "encode", "weights": str(weights)}, model)
    network = openvino.Core().read_model(model)
    if kind == "int8":
        network = nncf.quantize(
            network,
            nncf.Dataset([converted.renamed({key: row[key][None] for key in row}) for row in rows]),
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(rows),
        )
    precision = "float32" if kind == "int8" else kind  # of operations not in integers
    answer = compiled(network, precision, len(os.sched_getaffinity(0)))

    def make(given: Mapping[str, np.ndarray]) -> Step:
        arrays = converted.renamed(given)
        return lambda: answer(arrays)[0]

    return make


def _row(length: int, vocab_size: int) -> dict[str, np.ndarray]:
    """Random ids as a row of the encoder's inputs."""
    ids = np.random.default_rng(length).integers(1000, vocab_size, length, np.int32)
    return dict(zip(INPUTS, (ids, np.ones_like(ids), np.zeros_like(ids)), strict=True))


if __name__ == "__main__":
    sys.exit(main())
