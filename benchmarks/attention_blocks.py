"""Attention of long rows in blocks of heads whose scores stay in the cache, compared with ours.

    python -m benchmarks.attention_blocks --precision float32

A block is some heads of one row. A loop computes two products and a softmax for one block after the
other, so that only the scores of one block are in memory. The gradient computes the scores of a
block again. The table has milliseconds of one layer's attention of BERT-base's shape, in turns.
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from rich.console import Console
from rich.table import Table

from benchmarks.in_turns import medians
from bert_tf.cli import command
from bert_tf.encoder.attention import attention_probabilities, padding_bias
from bert_tf.encoder.config import POLICIES

_HEADS, _SIZE = 12, 64
_SHAPES = ((8, 128), (1, 512), (4, 384), (4, 512))
_BLOCKS = (1, 2, 4, 12)  # heads of a block
_ROUNDS, _STEPS = 8, 3

# query, key and value, each [batch, heads, row_len, head_size], and the bias -> mixed values.
Way = Callable[..., tf.Tensor]


def main() -> int:
    """Prints the table; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.attention_blocks", __doc__)
    parser.add_argument("--precision", choices=POLICIES, default="float32")
    parser.add_argument("--threads", type=int, default=2)
    return command.run("attention_blocks", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    dtype = tf.dtypes.as_dtype(arguments.precision)
    table = Table("rows x tokens", "pass", "ours, ms", *(f"blocks of {n}, ms" for n in _BLOCKS))
    for batch, length in _SHAPES:
        for name, makes_gradient in (("forward", False), ("forward, backward", True)):
            ways = [_ours(makes_gradient), *(_in_blocks(heads) for heads in _BLOCKS)]
            given = _inputs(batch, length, dtype)
            steps = [_step(way, makes_gradient) for way in ways]
            found = [f"{1000 * seconds:.2f}" for seconds in _in_turns(steps, given)]
            table.add_row(f"{batch} x {length}", name, *found)
    Console(width=110).print(table)


def _inputs(batch: int, length: int, dtype: tf.DType) -> list[tf.Tensor]:
    shape = [batch, _HEADS, length, _SIZE]
    found = [tf.cast(tf.random.stateless_normal(shape, [0, n]), dtype) for n in range(3)]
    return [*found, padding_bias(tf.ones([batch, length], tf.bool))]


def _ours(for_gradient: bool) -> Way:
    def attention(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
        return tf.matmul(attention_probabilities(query, key, bias, for_gradient), value)

    return attention


def _in_blocks(heads: int) -> Way:
    """Attention of `heads` heads at a time."""

    def blocks(x: tf.Tensor) -> tf.Tensor:
        return tf.reshape(x, [-1, heads, tf.shape(x)[2], _SIZE])

    @tf.custom_gradient
    def attention(
        query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, bias: tf.Tensor
    ) -> tuple[tf.Tensor, Callable]:
        bias = tf.repeat(bias, _HEADS // heads, axis=0)  # one for each block
        given = (*map(blocks, (query, key, value)), bias)

        def mixed(block: Sequence[tf.Tensor]) -> tf.Tensor:
            q, k, v, b = block
            return tf.matmul(attention_probabilities(q, k, b, for_gradient=False), v)

        def gradients(block: Sequence[tf.Tensor]) -> tuple[tf.Tensor, ...]:
            q, k, v, b, upstream = block
            shares = attention_probabilities(q, k, b, for_gradient=False)
            weighted = shares * tf.matmul(upstream, v, transpose_b=True)
            of_scores = weighted - shares * tf.reduce_sum(weighted, axis=-1, keepdims=True)
            of_scores *= 1.0 / math.sqrt(_SIZE)
            of_key = tf.matmul(of_scores, q, transpose_a=True)
            of_value = tf.matmul(shares, upstream, transpose_a=True)
            return tf.matmul(of_scores, k), of_key, of_value

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor | None, ...]:
            found = _loop(gradients, (*given, blocks(upstream)), (query.dtype,) * 3)
            return *(tf.reshape(each, tf.shape(query)) for each in found), None

        return tf.reshape(_loop(mixed, given, query.dtype), tf.shape(query)), gradient

    return attention


def _loop(function: Callable, blocks: Sequence[tf.Tensor], dtypes: Any) -> Any:
    """The results of a function for all blocks, computed one after the other."""
    return tf.map_fn(
        lambda i: function([each[i] for each in blocks]),
        tf.range(tf.shape(blocks[0])[0]),
        fn_output_signature=dtypes,
        parallel_iterations=1,
    )


def _step(way: Way, makes_gradient: bool) -> Callable[..., list[tf.Tensor]]:
    @tf.function(autograph=False)
    def step(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, bias: tf.Tensor) -> list:
        if not makes_gradient:
            return [way(query, key, value, bias)]
        with tf.GradientTape() as tape:
            tape.watch([query, key, value])
            mixed = way(query, key, value, bias)
        return [mixed, *tape.gradient(mixed, [query, key, value], mixed)]

    return step


def _in_turns(steps: list[Callable[..., list[tf.Tensor]]], given: list[tf.Tensor]) -> list[float]:
    """The median seconds of each step; all steps must give the same result."""
    first, *others = [step(*given) for step in steps]
    for other in others:
        for one, same in zip(first, other, strict=True):
            one, same = tf.cast(one, tf.float32), tf.cast(same, tf.float32)
            tf.debugging.assert_near(one, same, rtol=0.05, atol=0.02)

    def called(step: Callable[..., list[tf.Tensor]]) -> Callable[[], object]:
        return lambda: step(*given)[0].numpy()

    return medians([*map(called, steps)], _ROUNDS, _STEPS)


if __name__ == "__main__":
    sys.exit(main())
