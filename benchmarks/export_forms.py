"""The forms of an export: for any device, for CPUs in one piece, and for CPUs in two shards.

    python -m benchmarks.export_forms --precision bfloat16

Computes the last layer of BERT in each form, as an export holds it, on the same ids. Every form has
a process of its own, with fixed weights and its numbers of threads, and they take turns. The forms
for CPUs rest on oneDNN, which TensorFlow uses by itself only on processors with AVX512-VNNI or AMX;
here it is turned on, unless TF_ENABLE_ONEDNN_OPTS is set.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.speed.turns import Contestant, Job, serve, take_turns
from benchmarks.speed.works import FIXED_WEIGHTS, PRECISIONS
from bert_tf.cli.command import module_parser, run

# Layers, width, and rows x tokens of a step.
_WORK = {
    (12, 768): ((1, 55), (4, 55), (32, 53), (8, 128)),
    (6, 384): ((1, 55), (32, 53)),
}
_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
_ENVIRONMENT = FIXED_WEIGHTS | {_ONEDNN: os.environ.get(_ONEDNN, "1")}


def main(argv: list[str] | None = None) -> int:
    """Measures; returns the exit code."""
    parser = module_parser("benchmarks.export_forms", __doc__)
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    return run("export_forms", parser, argv, _measure, "stopped")


def _measure(arguments: argparse.Namespace) -> None:
    from bert_tf.export.sharded import SHARDS
    from bert_tf.report import processor

    threads = arguments.threads
    halves = max(1, threads // SHARDS)
    ways = [("any", threads, 1), ("one piece", threads, 1), ("shards", threads, threads)]
    ways.append(("shards", halves, SHARDS))
    table = Table("layers x width", "rows x tokens", *(f"{f}, {a} and {b}" for f, a, b in ways))
    table.title = f"ms, intra-op and inter-op threads; {arguments.precision}; {processor()}"
    for (layers, width), sizes in _WORK.items():
        settings = {"layers": layers, "width": width, "precision": arguments.precision}
        with tempfile.TemporaryDirectory() as folder:
            contestants = [
                Contestant(
                    "benchmarks.export_forms",
                    settings
                    | {"name": f"{form} {a} {b}", "form": form, "intra_op": a, "inter_op": b}
                    | {"environment": _ENVIRONMENT},
                    Path(folder),
                )
                for form, a, b in ways
            ]
            for rows, tokens in sizes:
                for each in contestants:
                    each.resize(rows, tokens)
                take_turns(contestants, arguments.rounds, max(3, 40 // rows))
                cells = (f"{1000 * each.median():.1f}" for each in contestants)
                table.add_row(f"{layers} x {width}", f"{rows} x {tokens}", *cells)
            for each in contestants:
                each.close()
    Console(width=110).print(table)


def _prepare(settings: dict[str, Any]) -> Job:
    """Prepares the job of one form, in a process of its own."""
    import tensorflow as tf

    from benchmarks.speed.inputs import full_batch
    from benchmarks.threads import set_threads
    from bert_tf.encoder.config import POLICIES, EncoderConfig
    from bert_tf.encoder.encoder import Encoder
    from bert_tf.export.fused_norms import fuse_norms
    from bert_tf.export.precision import copied
    from bert_tf.export.served_model import Form, ServedModel
    from bert_tf.export.sharded import sharded

    set_threads(settings)
    width, random = settings["width"], np.random.RandomState(0)
    config = EncoderConfig(
        hidden_size=width,
        num_hidden_layers=settings["layers"],
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        hidden_act="gelu",
    )
    encoder = Encoder(config, dtype=POLICIES[settings["precision"]])
    for weight in encoder.weights:
        if weight.ndim == 1:  # a bias of zeros would be left out
            weight.assign(weight + 0.01 * random.normal(size=weight.shape))
    if settings["form"] != "any":
        encoder = copied(encoder, encoder.dtype_policy)
        fuse_norms(encoder)
    if settings["form"] == "shards":
        encoder = sharded(encoder)
    # It changes nothing of a model that is for any device.
    served, batch = ServedModel(encoder, Form(device="any")), {}
    call = tf.function(lambda ids: served(ids)["sequence_output"])

    def resize(rows: int, tokens: int) -> None:
        made = full_batch(rows, tokens, config.vocab_size)
        batch.update({name: tf.constant(value) for name, value in made.items()})

    return Job(lambda: call(batch).numpy(), resize=resize)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].startswith("{"):
        serve(_prepare)
    else:
        sys.exit(main())
