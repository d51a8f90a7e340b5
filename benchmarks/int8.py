"""What 8-bit integers would give and cost: the encoder's matrix products by oneDNN's int8 kernels.

    python -m benchmarks.int8 RUN [RUN …]

For finished runs of any task but pre-training. Weights are rounded to 8 bits by the largest of each
output column, activations by the largest of each call; all else is computed in bfloat16. The
product is TensorFlow's internal op `_QuantizedMatMul`, which only builds with oneDNN have, so that
exports do not use it. The table has the run's metric on its dev data, and the sequences a second of
its encoder on 8 x 128 tokens, in turns, next to float32 and bfloat16; weights are always constants.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import ops

from benchmarks.speed import inputs
from bert_tf.cli import command
from bert_tf.config.run import FinetuningRun
from bert_tf.encoder.linear import Linear
from bert_tf.errors import UserError
from bert_tf.export.served_model import Form, ServedModel
from bert_tf.runs.run_folder import RunFolder
from bert_tf.runs.scoring import trained

_BATCH, _LENGTH = 8, 128
_ROUNDS, _STEPS = 12, 3
_KINDS = ("float32", "bfloat16", "int8")
# The heads of a few labels stay as they are.
_LEAST_UNITS = 64


def main() -> int:
    """Prints a row for each run and number; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.int8", __doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    return command.run("int8", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    table = Table("run", "numbers", "metric", "dev", "sequences/s", "ratio to bfloat16")
    for path in arguments.runs:
        for row in _compare(path):
            table.add_row(*row)
    Console(width=100).print(table)


def _compare(path: Path) -> list[tuple[str, ...]]:
    run = RunFolder.open(path)
    if not isinstance(run.config, FinetuningRun):
        raise UserError(f"{path} is a {run.config.task} run; name a fine-tuned one")
    scores, steps, dev = {}, {}, None
    for kind in _KINDS:
        task, model = trained(run, "float32" if kind == "float32" else "bfloat16")
        dev = dev or task.read(next(iter(task.files("dev").values())))
        call = _int8_call(model) if kind == "int8" else Linear.call
        with mock.patch.object(Linear, "call", call):
            scores[kind] = task.score(model, model.infer(dev), dev)
            steps[kind] = _encoding(model)
    seconds: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    for number in range(_ROUNDS + 1):
        for kind, step in steps.items():
            for _ in range(_STEPS):
                began = time.perf_counter()
                step()
                if number:  # the first turn warms up
                    seconds[kind].append(time.perf_counter() - began)
    rates = {kind: _BATCH / statistics.median(each) for kind, each in seconds.items()}
    metric = task.best_metric_of(run.config)
    return [
        (
            path.name,
            kind,
            metric,
            f"{scores[kind][metric]:.4f}",
            f"{rates[kind]:.1f}",
            f"{rates[kind] / rates['bfloat16']:.2f}",
        )
        for kind in _KINDS
    ]


def _encoding(model: keras.Model) -> Callable[[], Any]:
    """A step of its encoder, with constants for weights, traced now."""
    # For any device, as only then is it this model itself, whose products are replaced.
    served = ServedModel(model, Form(freeze=True, device="any"))
    batch = inputs.full_batch(_BATCH, _LENGTH, model.encoder.config.vocab_size)
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    encode = served.function(lambda features: model.encoder.encode(features).layers[-1])
    function = tf.function(encode).get_concrete_function(tensors)
    return lambda: function(tensors).numpy()


def _int8_call(model: keras.Model) -> Callable[..., tf.Tensor]:
    """What computes `Linear.call` for the layers of a model, with the product in integers."""
    arrays = {id(weight): weight.numpy() for weight in model.weights}
    exact = Linear.call

    def call(layer: Linear, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        if training:
            raise NotImplementedError("the product in integers has no gradient")
        if layer.units < _LEAST_UNITS:
            return exact(layer, tokens)
        kernel = arrays[id(layer.kernel)]
        largest = np.maximum(np.abs(kernel).max(axis=0), 1e-12)
        rounded = np.round(kernel / largest * 127).astype(np.int8)
        return layer._activate(_product(tokens, rounded, largest, arrays[id(layer.bias)]))

    return call


def _product(
    tokens: tf.Tensor, kernel: np.ndarray, largest: np.ndarray, bias: np.ndarray
) -> tf.Tensor:
    """tokens [tokens, n] times int8 [n, units] * largest / 127, plus bias, in the tokens' dtype."""
    exact = tf.cast(tokens, tf.float32)
    bound = tf.reduce_max(tf.abs(exact))
    whole, low, high = tf.quantization.quantize(
        exact, -bound, bound, tf.qint8, mode="SCALED", narrow_range=True
    )
    weights = tf.bitcast(tf.constant(kernel), tf.qint8)
    given = [whole, weights, tf.constant(bias), low, high, -tf.constant(largest), largest]
    given = [tf.convert_to_tensor(each) for each in given]
    attributes = {
        "Tdevice_inputs": _types(*(each.dtype for each in given)),
        "Thost_inputs": _types(),
        "Tdevice_outputs": _types(tokens.dtype),
        "Thost_outputs": _types(),
        "T1": _type(tf.qint8),
        "T2": _type(tf.qint8),
        "Tbias": _type(tf.float32),
        "Tout": _type(tokens.dtype),
        "U": _type(tf.float32),
        "is_weight_const": attr_value_pb2.AttrValue(b=True),
        "is_bias_const": attr_value_pb2.AttrValue(b=True),
        "fused_ops": attr_value_pb2.AttrValue(
            list=attr_value_pb2.AttrValue.ListValue(s=[b"BiasAdd", b"Dequantize"])
        ),
        "input_quant_mode": attr_value_pb2.AttrValue(s=b"SCALED"),
        "output_quant_mode": attr_value_pb2.AttrValue(s=b"SCALED"),
    }
    graph = ops.get_default_graph()
    made = graph.create_op("_QuantizedMatMul", given, [tokens.dtype], attrs=attributes)
    product = made.outputs[0]
    product.set_shape([None, kernel.shape[1]])
    return product


def _type(dtype: tf.DType) -> attr_value_pb2.AttrValue:
    return attr_value_pb2.AttrValue(type=dtype.as_datatype_enum)


def _types(*dtypes: tf.DType) -> attr_value_pb2.AttrValue:
    numbers = [each.as_datatype_enum for each in dtypes]
    return attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(type=numbers))


if __name__ == "__main__":
    sys.exit(main())
