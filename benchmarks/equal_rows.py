"""What it costs that rows with the same token ids have the same scores, where no rows are equal.

    python -m benchmarks.equal_rows

Exports models of BERT-base's shape with random weights twice: as they are, and without the
operations that find equal rows. Both answer the same texts, in turns and in one process; no two of
the texts are equal. A row gives the median milliseconds of each export, their ratio, and how long
it takes to find that this many rows of 64 tokens are all different.
"""

import argparse
import contextlib
import importlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from rich.console import Console
from rich.table import Table

from bert_tf.cli.command import module_parser, run

# The modules that use the functions that find equal rows.
_USERS = (
    "tasks.task_model",
    "tasks.texts.groups",
    "tasks.embedding.model",
    "tasks.reranking.model",
)
_WORDS = "the cat dog bird fish sat ran flew swam on under over mat log tree sea".split()


def main(argv: list[str] | None = None) -> int:
    """Measures; returns the exit code."""
    parser = module_parser("benchmarks.equal_rows", __doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768, help="a multiple of 64")
    parser.add_argument("--rounds", type=int, default=15)
    return run("equal_rows", parser, argv, _measure, "stopped")


def _measure(arguments: argparse.Namespace) -> None:
    import tensorflow as tf

    from bert_tf import Encoder, EncoderConfig, Reranker, TextClassifier, TextEmbedder, Tokenizer
    from bert_tf.report import processor
    from bert_tf.text.parts import first_equal

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS]
    config = EncoderConfig(
        len(vocabulary),
        hidden_size=arguments.width,
        num_hidden_layers=arguments.layers,
        num_attention_heads=arguments.width // 64,
        intermediate_size=4 * arguments.width,
    )
    encoder, tokenizer = Encoder(config), Tokenizer(vocabulary)
    source = random.Random(0)

    def texts(count: int) -> tf.Tensor:
        return tf.constant([" ".join(source.choices(_WORDS, k=50)) for _ in range(count)])

    works: list[tuple[str, Any, list[dict[str, tf.Tensor]]]] = [
        (
            "classification",
            TextClassifier(encoder, tokenizer, ["a", "b", "c"]),
            [{"text": texts(1)}, {"text": texts(32)}],
        ),
        ("embedding", TextEmbedder(encoder, tokenizer), [{"text": texts(32)}]),
        (
            "re-ranking",
            Reranker(encoder, tokenizer),
            [{"query": texts(1), "passages": texts(32)[tf.newaxis]}],
        ),
    ]
    find = tf.function(first_equal)
    table = Table("task", "texts", "ms", "without, ms", "ratio", "finding, ms")
    table.title = f"{arguments.layers} x {arguments.width}, float32; {processor()}"
    for task, model, requests in works:
        with tempfile.TemporaryDirectory() as folder:
            model.export(Path(folder) / "as_it_is")
            with _without_equal_rows():
                model.export(Path(folder) / "without")
            loaded = [tf.saved_model.load(f"{folder}/{name}") for name in ("as_it_is", "without")]
        for request in requests:
            medians = _medians([each.serve for each in loaded], request, arguments.rounds)
            rows = int(tf.size(list(request.values())[-1]))
            one, other = (f"{1000 * each:.1f}" for each in medians)
            ids = {"ids": tf.random.uniform([rows, 3 * 64], 0, 30_000, tf.int32)}
            (finding,) = _medians([lambda of: {"first": find(of["ids"])}], ids, 50)
            ratio = f"{medians[0] / medians[1]:.3f}"
            table.add_row(task, str(rows), one, other, ratio, f"{1000 * finding:.2f}")
    Console(width=100).print(table)


@contextlib.contextmanager
def _without_equal_rows() -> Iterator[None]:
    """Exports without the operations that find equal rows."""
    import tensorflow as tf

    from bert_tf.text.parts import map_in_chunks

    def every(rows: tf.Tensor) -> tf.Tensor:
        return tf.range(tf.shape(rows)[0])

    others: Mapping[str, Callable] = {
        "map_rows": map_in_chunks,
        "first_equal": every,
        "as_first": lambda values, rows: values,
        "alike_where_equal": lambda values, scores: values,
    }
    with contextlib.ExitStack() as stack:
        for name in _USERS:
            module = importlib.import_module(f"bert_tf.{name}")
            for symbol, other in others.items():
                if hasattr(module, symbol):
                    stack.enter_context(mock.patch.object(module, symbol, other))
        yield


def _medians(
    ways: list[Callable[[Any], Any]], request: Mapping[str, Any], rounds: int
) -> list[float]:
    """The median seconds of an answer in each way; the ways take turns."""
    seconds: list[list[float]] = [[] for _ in ways]
    for number in range(rounds + 3):
        places = range(len(ways)) if number % 2 else reversed(range(len(ways)))
        for place in places:
            began = time.perf_counter()
            for value in ways[place](request).values():
                value.numpy()
            if number >= 3:  # after a warm-up
                seconds[place].append(time.perf_counter() - began)
    return [statistics.median(each) for each in seconds]


if __name__ == "__main__":
    sys.exit(main())
