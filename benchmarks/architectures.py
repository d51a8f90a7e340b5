"""The same encoder with the blocks of BERT and with those of ModernBERT: time per weight.

    python -m benchmarks.architectures --rows 8 --length 128

The blocks are `TransformerBlock` and `tests.encoder.modern_bert.ModernBlock`, at the width of
BERT-base, with feed-forward layers that give both about the same number of weights. Calls are
compiled, and the two encoders take turns. The table has the median milliseconds of a forward call
and of a training step (forward, gradient of every weight). Its last column is ModernBERT's time per
weight of the blocks divided by BERT's: below 1, ModernBERT's blocks are faster.
"""

import argparse
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table

from benchmarks.in_turns import medians
from bert_tf.cli import command
from bert_tf.encoder.config import POLICIES, EncoderConfig
from bert_tf.encoder.encoder import LAYOUTS, Encoder
from tests.encoder.modern_bert import modern_bert

_HIDDEN = 768
# A gated feed-forward layer has three kernels, and BERT's has two.
_SIZES = {"BERT": 4 * _HIDDEN, "ModernBERT": 8 * _HIDDEN // 3}
_ROUNDS = 15


def main() -> int:
    """Prints the table; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.architectures", __doc__)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--length", type=int, default=128, help="tokens of every row")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--precision", choices=POLICIES, default="float32")
    return command.run("architectures", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    random = np.random.default_rng(0)
    shape = arguments.rows, arguments.length
    inputs = {
        "input_word_ids": tf.constant(random.integers(0, 1000, shape), tf.int32),
        "input_mask": tf.ones(shape, tf.int32),
        "input_type_ids": tf.zeros(shape, tf.int32),
    }
    table = Table("layout", "work", "BERT, ms", "ModernBERT, ms", "per weight")
    for layout in LAYOUTS:
        encoders = [
            _encoder(name, layout, arguments.layers, POLICIES[arguments.precision])
            for name in _SIZES
        ]
        counts = [sum(block.count_params() for block in each.blocks) for each in encoders]
        for work, make in (("forward", _forward), ("training step", _training_step)):
            times = _in_turns([make(each) for each in encoders], inputs)
            ratio = times[1] / counts[1] / (times[0] / counts[0])
            table.add_row(layout, work, *(f"{1000 * t:.1f}" for t in times), f"{ratio:.2f}")
    Console(width=100).print(table)


def _encoder(name: str, layout: str, layers: int, policy: str) -> Encoder:
    config = EncoderConfig(
        vocab_size=1000,
        num_hidden_layers=layers,
        intermediate_size=_SIZES[name],
        hidden_act="gelu",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    make = Encoder if name == "BERT" else modern_bert
    return make(config, layout, with_pooler=False, dtype=policy)


def _forward(encoder: Encoder) -> Callable:
    @tf.function(autograph=False)
    def forward(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        return tf.reduce_sum(encoder.encode(inputs).layers[-1])

    return forward


def _training_step(encoder: Encoder) -> Callable:
    weights = [weight.value for weight in encoder.trainable_weights]

    @tf.function(autograph=False)
    def step(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        with tf.GradientTape() as tape:
            last = encoder.encode(inputs, training=True).layers[-1]
            loss = tf.reduce_sum(tf.square(tf.cast(last, tf.float32)))
        gradients = map(tf.convert_to_tensor, tape.gradient(loss, weights))
        return tf.add_n([tf.reduce_sum(each) for each in gradients])

    return step


def _in_turns(calls: list[Callable], inputs: dict[str, tf.Tensor]) -> list[float]:
    """The median seconds of each call."""

    def step(call: Callable) -> Callable[[], object]:
        return lambda: call(inputs).numpy()

    return medians([*map(step, calls)], _ROUNDS)


if __name__ == "__main__":
    raise SystemExit(main())
