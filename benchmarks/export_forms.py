"""An export's form for CPUs, and its form for any device.

    TF_ENABLE_ONEDNN_OPTS=1 python -m benchmarks.export_forms

Computes the last layer of BERT in both forms of `bert_tf.export.served_model.ServedModel`, in
turns, and prints the time of a call for several sizes and batches. The form for CPUs rests on
oneDNN, which TensorFlow uses by itself only on processors with AVX512-VNNI or AMX.
"""

import argparse
import os
import statistics
import sys
import time

import numpy as np
import tensorflow as tf

from benchmarks.speed.inputs import full_batch
from bert_tf.command import module_parser, run
from bert_tf.config.kinds import POLICIES
from bert_tf.export.served_model import Form, ServedModel
from bert_tf.models import Encoder, EncoderConfig
from bert_tf.report.machine import processor

# Layers, width, rows, tokens of each.
_WORK = ((12, 768, 8, 128), (12, 768, 1, 55), (6, 384, 32, 53))
_ROUNDS = 5


def main(argv: list[str] | None = None) -> int:
    """Measures; returns the exit code."""
    parser = module_parser("benchmarks.export_forms", __doc__)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    return run("export_forms", parser, argv, _measure, "stopped")


def _measure(arguments: argparse.Namespace) -> None:
    random = np.random.RandomState(0)
    setting = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "not set")
    print(f"{processor()}, {arguments.precision}, TF_ENABLE_ONEDNN_OPTS {setting}")
    for layers, width, rows, tokens in _WORK:
        config = EncoderConfig(
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=width // 64,
            intermediate_size=4 * width,
            hidden_act="gelu",
        )
        encoder = Encoder(config, dtype=POLICIES[arguments.precision])
        for weight in encoder.weights:
            if weight.ndim == 1:  # a bias of zeros would be left out
                weight.assign(weight + 0.01 * random.normal(size=weight.shape))
        batch = full_batch(rows, tokens, config.vocab_size)
        given = {name: tf.constant(value) for name, value in batch.items()}
        forms = {device: ServedModel(encoder, Form(device=device)) for device in ("cpu", "any")}
        calls = {
            device: tf.function(lambda ids, served=served: served(ids)["sequence_output"])
            for device, served in forms.items()
        }
        steps = max(2, 200 // (layers * rows))
        found: dict[str, list[float]] = {device: [] for device in forms}
        for turn in range(_ROUNDS + 1):
            for device, call in calls.items():
                for _ in range(steps):
                    began = time.perf_counter()
                    call(given).numpy()
                    if turn:  # the first is a warm-up
                        found[device].append(1000 * (time.perf_counter() - began))
        cpu, other = (statistics.median(found[device]) for device in ("cpu", "any"))
        print(
            f"{layers} x {width}, {rows} x {tokens} tokens: cpu {cpu:.1f} ms, any {other:.1f} ms, "
            f"{other / cpu:.2f} times as fast"
        )


if __name__ == "__main__":
    sys.exit(main())
