"""Two pieces of an encoder's block in other ways than ours: what they would give and cost.

    python -m benchmarks.kernels --precision bfloat16

The first is LayerNorm as one operation: TensorFlow makes `_MklLayerNorm` of a batch normalization
in which each token is a channel, as Keras 2 wrote it. The second transposes tokens to heads, and
moves eight bytes at a time: four numbers of bfloat16, of the 64 in the last axis, which stays last.
The table has microseconds of a call for several numbers of tokens, in turns, ours first.
"""

import argparse
import functools
import sys
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table

from benchmarks.in_turns import medians
from bert_tf.cli import command
from bert_tf.encoder.config import POLICIES
from bert_tf.encoder.layers import LayerNorm

_TOKENS = (20, 53, 424, 1696)
_HIDDEN, _HEADS, _EPSILON = 768, 12, 1e-12
# A call takes little longer than Python needs to start it, so a graph holds this many calls.
_REPEATED = 24
_ROUNDS, _STEPS = 10, 5

Way = Callable[[tf.Tensor], tf.Tensor]


def main() -> int:
    """Prints the table; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.kernels", __doc__)
    parser.add_argument("--precision", choices=POLICIES, default="bfloat16")
    parser.add_argument("--threads", type=int, default=2)
    return command.run("kernels", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    table = Table("piece", "tokens", "ours, us", "other way, us", "ours over other")
    dtype = tf.dtypes.as_dtype(arguments.precision)
    layer = LayerNorm(_EPSILON, dtype=POLICIES[arguments.precision])
    layer.build((None, _HIDDEN))
    pieces = {
        "LayerNorm as one operation": (
            _HIDDEN,
            lambda x: layer(x, x),
            lambda x: _one_operation(layer, x, x),
        ),
        "heads in words of 8 bytes": (3 * _HIDDEN, _heads, _heads_in_words),
    }
    for name, (width, ours, other) in pieces.items():
        for tokens in _TOKENS:
            values = np.random.default_rng(0).normal(size=(tokens, width))
            first, second = _in_turns((ours, other), tf.cast(values, dtype))
            table.add_row(
                name, str(tokens), f"{first:.0f}", f"{second:.0f}", f"{first / second:.2f}"
            )
    Console(width=100).print(table)


def _one_operation(layer: LayerNorm, x: tf.Tensor, residual: tf.Tensor) -> tf.Tensor:
    """The output of `layer` for tokens [tokens, hidden], as one operation."""
    x = tf.cast(x, tf.float32) + tf.cast(residual, tf.float32)
    shape, empty = tf.shape(x), tf.constant([], tf.float32)
    normalized = tf.raw_ops.FusedBatchNormV3(
        x=tf.reshape(x, [1, shape[0], shape[1], 1]),
        scale=tf.fill([shape[0]], 1.0),
        offset=tf.fill([shape[0]], 0.0),
        mean=empty,
        variance=empty,
        epsilon=layer.epsilon,
        data_format="NCHW",
        is_training=True,
    ).y
    return tf.cast(layer.beta + tf.reshape(normalized, shape) * layer.gamma, layer.compute_dtype)


def _heads(rows: tf.Tensor) -> tf.Tensor:
    """[tokens, 3 * hidden] -> [3, heads, tokens, head size], as attention turns them."""
    return tf.transpose(tf.reshape(rows, [-1, 3, _HEADS, _HIDDEN // _HEADS]), [1, 2, 0, 3])


def _heads_in_words(rows: tf.Tensor) -> tf.Tensor:
    """The same result as `_heads`, moved in words of eight bytes."""
    size = _HIDDEN // _HEADS
    together = 8 // rows.dtype.size
    words = tf.bitcast(tf.reshape(rows, [-1, 3, _HEADS, size // together, together]), tf.int64)
    turned = tf.bitcast(tf.transpose(words, [1, 2, 0, 3]), rows.dtype)
    return tf.reshape(turned, [3, _HEADS, -1, size])


def _in_turns(ways: tuple[Way, Way], x: tf.Tensor) -> list[float]:
    """Microseconds of a call of each way; both must give the same result."""
    one, other = (tf.cast(way(x), tf.float32) for way in ways)
    tf.debugging.assert_near(one, other, rtol=0.02, atol=0.02)
    repeated = [_repeated(way, x) for way in ways]
    steps = [functools.partial(step, *[x] * _REPEATED) for step in repeated]
    return [each / _REPEATED * 1e6 for each in medians(steps, _ROUNDS, _STEPS)]


def _repeated(way: Way, x: tf.Tensor) -> Callable[..., tf.Tensor]:
    """Many calls in one graph, each with an input of its own, for any number of tokens."""

    def calls(*inputs: tf.Tensor) -> tf.Tensor:
        # The graph reads one number of each result, so that no call can be left out. All inputs may
        # be the same tensor: the graph does not know this, and computes each call.
        return tf.add_n([tf.reshape(way(each), [-1])[0] for each in inputs])

    specs = [tf.TensorSpec([None, x.shape[1]], x.dtype)] * _REPEATED
    return tf.function(calls, autograph=False).get_concrete_function(*specs)


if __name__ == "__main__":
    sys.exit(main())
