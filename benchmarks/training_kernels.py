"""Pieces of a training step in two ways: the time of each way, forward and backward.

    python -m benchmarks.training_kernels --precision bfloat16

The first three are pieces of a block of BERT-base, of 1,024 tokens, by plain operations and
compiled by XLA. Training computes the softmax by plain operations and the other two compiled. The
gradient of a bias comes from `BiasAddGrad` or from a product with ones; the largest error of each
is given in deviations of a sum. The rest is about the update, in float32: the gradient of the word
embeddings as a table, or as rows until it is clipped; decay and Adam of all large weights of BERT-
base, with a gradient that is clipped or not; and the same in a loop by XLA. The table has the
median milliseconds of a call; the two ways take turns. For the upper five pieces, a graph holds
eight calls.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table

from benchmarks.in_turns import medians
from bert_tf.cli import command
from bert_tf.encoder import activations, compiled
from bert_tf.encoder.attention import attention_probabilities
from bert_tf.encoder.config import POLICIES
from bert_tf.encoder.layers import Dropout, LayerNorm
from bert_tf.optimization import AdamW

_TOKENS, _HIDDEN, _WORDS = 1024, 768, 30522
_ROWS, _HEADS, _LENGTH, _HEAD_SIZE = 8, 12, 128, 64
_SHAPES = [(768, 2304), (768, 768), (768, 3072), (3072, 768)] * 12 + [(_WORDS, _HIDDEN)]
_ROUNDS, _REPEATED = 12, 8

Way = Callable[..., Any]


def main() -> int:
    """Prints the table; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.training_kernels", __doc__)
    parser.add_argument("--precision", choices=POLICIES, default="bfloat16")
    parser.add_argument("--threads", type=int, default=2)
    return command.run("training_kernels", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    table = Table("piece", "one way", "ms", "the other", "ms")
    pieces = _block(arguments.precision) + _bias(arguments.precision) + _embeddings()
    for repeated, part in ((_REPEATED, pieces), (1, _updates())):
        for piece, ways in part:
            (first, one), (second, other) = ways.items()
            times = [1e3 * each / repeated for each in medians((one, other), _ROUNDS, warm_up=2)]
            table.add_row(piece, first, f"{times[0]:.2f}", second, f"{times[1]:.2f}")
    Console(width=110).print(table)


def _block(precision: str) -> list[tuple[str, dict[str, Way]]]:
    policy = POLICIES[precision]
    gelu = activations.by_name("gelu", training=True)
    norm, dropout = LayerNorm(dtype=policy), Dropout(0.1, dtype=policy)
    norm.build((None, _HIDDEN))
    bias = tf.zeros([_ROWS, 1, 1, _LENGTH])

    def dropped_sum(x: tf.Tensor, residual: tf.Tensor) -> tf.Tensor:
        drawn = dropout.draw(tf.shape(x), training=True)
        return norm(x, residual, drawn=drawn, training=True)

    def softmax(query: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
        return attention_probabilities(query, key, bias, for_gradient=True)

    @compiled.compiled
    def normalized(scores: tf.Tensor) -> tf.Tensor:
        scaled = tf.cast(scores, tf.float32) / _HEAD_SIZE**0.5 + bias
        return tf.cast(tf.nn.softmax(scaled), scores.dtype)

    def compiled_softmax(query: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
        return normalized(tf.matmul(query, key, transpose_b=True))

    wide = [_normal(precision, _TOKENS, 4 * _HIDDEN)]
    narrow = [_normal(precision, _TOKENS, _HIDDEN) for _ in range(2)]
    heads = [_normal(precision, _ROWS, _HEADS, _LENGTH, _HEAD_SIZE) for _ in range(2)]

    def two(function: Way, inputs: list[tf.Tensor]) -> dict[str, Way]:
        with mock.patch.object(compiled, "_NARROWEST", sys.maxsize):
            plain = _there_and_back(function, inputs)
        return {"plain": plain, "compiled": _there_and_back(function, inputs)}

    return [
        ("GELU", two(gelu, wide)),
        ("dropout, sum, LayerNorm", two(dropped_sum, narrow)),
        (
            "scores and softmax",
            {
                "plain": _there_and_back(softmax, heads),
                "compiled": _there_and_back(compiled_softmax, heads),
            },
        ),
    ]


def _bias(precision: str) -> list[tuple[str, dict[str, Way]]]:
    upstream = _normal(precision, _TOKENS, 4 * _HIDDEN)
    exact = tf.cast(upstream, tf.float64).numpy().sum(axis=0)
    ones = tf.ones([1, _TOKENS], upstream.dtype)
    found = {}
    for name, sums in (
        ("BiasAddGrad", lambda x: tf.raw_ops.BiasAddGrad(out_backprop=x)),
        ("product", lambda x: tf.matmul(ones, x)[0]),
    ):
        error = np.abs(tf.cast(sums(upstream), tf.float64) - exact).max() / _TOKENS**0.5
        found[f"{name}, error {error:.1e}"] = _repeated(sums, [upstream])
    return [("gradient of a bias", found)]


def _embeddings() -> list[tuple[str, dict[str, Way]]]:
    ids = tf.constant(np.random.default_rng(0).integers(0, _WORDS, 1700))
    values = _normal("float32", 1700, _HIDDEN)

    def clipped(values: tf.Tensor) -> tf.Tensor:
        return tf.clip_by_global_norm([values], 1.0)[0][0]

    def as_table(values: tf.Tensor) -> tf.Tensor:
        slices = tf.IndexedSlices(values, ids, tf.constant([_WORDS, _HIDDEN]))
        return clipped(tf.convert_to_tensor(slices))

    def as_rows(values: tf.Tensor) -> tf.Tensor:
        rows, places = tf.unique(ids)
        sums = tf.math.unsorted_segment_sum(values, places, tf.size(rows))
        slices = tf.IndexedSlices(clipped(sums), rows, tf.constant([_WORDS, _HIDDEN]))
        return tf.convert_to_tensor(slices)

    ways = {"table": _repeated(as_table, [values]), "rows": _repeated(as_rows, [values])}
    return [("gradient of the word embeddings", ways)]


def _updates() -> list[tuple[str, dict[str, Way]]]:
    weights = [keras.Variable(0.02 * _normal("float32", *shape)) for shape in _SHAPES]
    gradients = [1e-3 * _normal("float32", *shape) for shape in _SHAPES]

    def update(clip_norm: float) -> Way:
        optimizer = AdamW(1e-5, clip_norm=clip_norm)
        optimizer.build(weights)
        return tf.function(lambda: optimizer.apply(gradients, weights), autograph=False)

    @tf.function(jit_compile=True, autograph=False)
    def moved(weight: tf.Tensor, gradient: tf.Tensor, m: tf.Tensor, v: tf.Tensor) -> tuple:
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * tf.square(gradient)
        return weight - 1e-5 * (m / (tf.sqrt(v) + 1e-6) + 0.01 * weight), m, v

    moments = [[tf.Variable(tf.zeros(shape)) for shape in _SHAPES] for _ in range(2)]

    @tf.function(autograph=False)
    def by_xla() -> None:
        factor = 1.0 / tf.maximum(tf.linalg.global_norm(gradients), 1.0)
        for weight, gradient, m, v in zip(weights, gradients, *moments, strict=True):
            state = weight.value, m, v
            found = moved(weight.value, gradient * factor, m, v)
            for variable, value in zip(state, found, strict=True):
                variable.assign(value)

    too_long, within = update(1.0), update(1e6)
    return [
        ("update", {"clipped": too_long, "not clipped": within}),
        ("update, clipped", {"operations": too_long, "compiled": by_xla}),
    ]


def _normal(dtype: str, *shape: int) -> tf.Tensor:
    return tf.cast(tf.random.stateless_normal(shape, [1, 2]), dtype)


def _there_and_back(function: Way, inputs: list[tf.Tensor]) -> Way:
    """`function` and its gradients."""

    def both(*inputs: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            result = function(*inputs)
        return [result, *tape.gradient(result, inputs, result)]

    return _repeated(both, inputs)


def _repeated(function: Way, inputs: list[tf.Tensor]) -> Way:
    """Calls in one graph, each with inputs of its own; one number of each result is read."""

    def calls(*inputs: tf.Tensor) -> list[tf.Tensor]:
        each = len(inputs) // _REPEATED
        found = [function(*inputs[n * each : (n + 1) * each]) for n in range(_REPEATED)]
        return [tf.reshape(result, [-1])[0] for result in tf.nest.flatten(found)]

    step = tf.function(calls, autograph=False).get_concrete_function(*inputs * _REPEATED)
    return lambda: step(*inputs * _REPEATED)


if __name__ == "__main__":
    sys.exit(main())
