"""Peak memory and time of an update, with the settings that save memory.

    python -m benchmarks.training_memory
    python -m benchmarks.training_memory --shape large --batch 16 --length 512 --rematerialize yes
    python -m benchmarks.training_memory --lora 0 8 --parts 1 --rematerialize no

A classifier is fine-tuned on rows of the full length: as it is, with the batch in parts
(`accumulation_steps`), with `rematerialize`, and with both. `--lora` adds adapters of the given
ranks. Each has a process of its own, whose peak includes Python and TensorFlow. Settings that do
not fit into memory have no figures. Weights are random.
"""

import argparse
import concurrent.futures
import itertools
import multiprocessing
import statistics
import sys
import time
from concurrent.futures.process import BrokenProcessPool

from rich.console import Console
from rich.table import Table

from benchmarks.memory import peak_bytes
from benchmarks.speed.works import PRECISIONS, SHAPES
from bert_tf.cli import command

_SHAPES = SHAPES | {"large": (24, 1024, 16)}
_VOCABULARY = 30522


def main() -> int:
    """Prints the table; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.training_memory", __doc__)
    parser.add_argument("--shape", choices=_SHAPES, default="base")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 8], help="accumulation_steps")
    parser.add_argument("--rematerialize", nargs="+", choices=("no", "yes"), default=["no", "yes"])
    parser.add_argument("--lora", type=int, nargs="+", default=[0], help="0 trains all weights")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--steps", type=int, default=3, help="updates that are timed")
    return command.run("training_memory", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    table = Table("precision", "lora", "parts", "rematerialize", "GiB", "seconds an update")
    table.title = f"{arguments.shape}, {arguments.batch} x {arguments.length} tokens"
    varied = arguments.precisions, arguments.lora, arguments.rematerialize, arguments.parts
    for precision, lora, rematerialize, parts in itertools.product(*varied):
        found = _in_a_process(
            arguments.shape,
            arguments.batch,
            arguments.length,
            precision,
            lora,
            parts,
            rematerialize == "yes",
            arguments.steps,
        )
        row = precision, str(lora), str(parts), rematerialize
        table.add_row(*row, *(f"{each:.2f}" for each in found or ()))
    Console(width=80).print(table)


def _in_a_process(*settings: object) -> tuple[float, float] | None:
    """The result of `measure`; None if the system killed the process for its use of memory."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(measure, *settings).result()
        except BrokenProcessPool:
            return None


def measure(
    shape: str,
    batch: int,
    length: int,
    precision: str,
    lora: int,
    parts: int,
    rematerialize: bool,
    steps: int,
) -> tuple[float, float]:
    """Peak GiB of this process and the median seconds of an update."""
    import keras

    import bert_tf
    from benchmarks.speed import inputs
    from benchmarks.speed.fitting import endless, training
    from bert_tf.config.train import LoraConfig
    from bert_tf.encoder.config import POLICIES
    from bert_tf.training.adapter import Adapter

    layers, hidden, heads = _SHAPES[shape]
    config = bert_tf.EncoderConfig(
        vocab_size=_VOCABULARY,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
    )
    encoder = bert_tf.Encoder(config, dtype=POLICIES[precision])
    model = bert_tf.TextClassifier(encoder, None, range(2))
    if lora:
        Adapter(model, LoraConfig(rank=lora)).attach()
    model.compile(
        optimizer=bert_tf.AdamW(1e-5),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        accumulation_steps=parts,
        rematerialize=rematerialize,
    )

    def rows(seed: int) -> dict:
        full = inputs.full_batch(batch, length, _VOCABULARY)
        return full | {"labels": (inputs.lengths(batch, seed) % 2).astype("int32")}

    job = training(model, endless(rows, ("labels",)))
    seconds = []
    for _ in range(1 + steps):
        began = time.perf_counter()
        job.step()
        seconds.append(time.perf_counter() - began)
    return peak_bytes() / 2**30, statistics.median(seconds[1:])


if __name__ == "__main__":
    sys.exit(main())
