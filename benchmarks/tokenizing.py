"""`python -m benchmarks.tokenizing FILE`: strings tokenized once, or in the input pipeline.

Fine-tunes the same classifier on the same batches in both ways, in turns, and prints the time of
`fit` and of each of its epochs. FILE has a text in each line, such as WikiText's; labels are made
up.
"""

import argparse
import statistics
import sys
import time

import keras
import tensorflow as tf

import bert_tf
from bert_tf.cli.command import module_parser, run
from bert_tf.report import processor

_BATCH = 32
_LABELS = ("no", "yes")


def main(argv: list[str] | None = None) -> int:
    """Measures; returns the exit code."""
    parser = module_parser("benchmarks.tokenizing", __doc__)
    parser.add_argument("file", metavar="FILE", help="a text in each line")
    parser.add_argument("--vocab", metavar="FILE", required=True, help="an uncased vocabulary")
    parser.add_argument("--rows", metavar="N", type=int, default=2048)
    parser.add_argument("--epochs", metavar="N", type=int, default=3)
    parser.add_argument("--rounds", metavar="N", type=int, default=3)
    parser.add_argument("--preset", metavar="NAME", default="bert-tiny-uncased")
    return run("tokenizing", parser, argv, _measure, "stopped")


def _measure(arguments: argparse.Namespace) -> None:
    with open(arguments.file, encoding="utf-8") as file:
        texts = [line.strip() for line in file if len(line) > 40][: arguments.rows]
    labels = [_LABELS[len(text) % 2] for text in texts]
    tokenizer = bert_tf.Tokenizer(arguments.vocab)
    sizes = bert_tf.EncoderConfig.preset(arguments.preset, vocab_size=tokenizer.vocab_size)
    times: dict[str, list[float]] = {"once": [], "in the pipeline": []}
    for turn in range(arguments.rounds + 1):
        for way, found in times.items():
            keras.utils.set_random_seed(0)
            model = bert_tf.TextClassifier(bert_tf.Encoder(sizes), tokenizer, _LABELS)
            began = time.perf_counter()
            if way == "once":
                model.fit(texts, labels, _BATCH, arguments.epochs, verbose=0, shuffle=False)
            else:
                rows = tf.data.Dataset.from_tensor_slices((texts, labels))
                rows = rows.batch(_BATCH, drop_remainder=True)
                model.fit(rows, epochs=arguments.epochs, verbose=0)
            if turn:  # the first is a warm-up
                found.append(time.perf_counter() - began)
    print(f"{processor()}; {arguments.preset}, {len(texts)} texts, {arguments.epochs} epochs")
    medians = {way: statistics.median(found) for way, found in times.items()}
    for way, found in times.items():
        print(f"tokenized {way}: {medians[way]:.2f} s (of {min(found):.2f} to {max(found):.2f})")
    print(f"once is {medians['in the pipeline'] / medians['once']:.2f} times as fast")


if __name__ == "__main__":
    sys.exit(main())
