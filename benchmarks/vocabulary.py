"""Vocabulary learning compared with other trainers: time, memory, pieces that unseen text takes.

    python -m benchmarks.vocabulary --input books/*.txt --held-out others/*.txt [--size 8000]

Each trainer runs in a fresh process and reads the same files; all vocabularies then cut the
held-out text with `bert_tf.Tokenizer`. Seconds count from the first file to the last piece, imports
left out; MiB is the peak of the process, which for the first and the third holds TensorFlow (about
700). Hugging Face tokenizers is measured where it is installed.
"""

import argparse
import importlib.util
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import existing
from benchmarks.memory import peak_bytes
from bert_tf.cli import command

_SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


class Job(NamedTuple):
    """What every trainer is given."""

    files: Sequence[Path]
    size: int
    lower_case: bool


class Outcome(NamedTuple):
    """What a trainer gives, and what it took."""

    pieces: Sequence[str]
    seconds: float
    peak_mib: int


def with_bert_tf(job: Job) -> Outcome:
    """The trainer of this project."""
    from bert_tf.text.vocabulary_learning import learn_vocabulary

    return _timed(lambda: learn_vocabulary(job.files, job.size, job.lower_case).pieces)


def with_tokenizers(job: Job) -> Outcome:
    """The WordPiece trainer of Hugging Face tokenizers, as it comes."""
    from tokenizers import BertWordPieceTokenizer

    def train() -> list[str]:
        tokenizer = BertWordPieceTokenizer(lowercase=job.lower_case)
        tokenizer.train(
            [str(file) for file in job.files],
            vocab_size=job.size,
            special_tokens=_SPECIAL_TOKENS,
            show_progress=False,
        )
        numbers = tokenizer.get_vocab()
        return sorted(numbers, key=numbers.get)

    return _timed(train)


def with_tensorflow_text(job: Job) -> Outcome:
    """The WordPiece trainer of tensorflow-text, as it comes."""
    import tensorflow as tf
    from tensorflow_text.tools.wordpiece_vocab import bert_vocab_from_dataset

    def train() -> list[str]:
        lines = tf.data.TextLineDataset([str(file) for file in job.files]).batch(1000)
        return bert_vocab_from_dataset.bert_vocab_from_dataset(
            lines, job.size, _SPECIAL_TOKENS, {"lower_case": job.lower_case}
        )

    return _timed(train)


def _timed(train: Callable[[], Sequence[str]]) -> Outcome:
    start = time.perf_counter()
    pieces = train()
    seconds = time.perf_counter() - start
    return Outcome(pieces, seconds, peak_bytes() >> 20)


def main() -> int:
    """Runs the trainers one after the other and prints the table.

    Returns:
        The exit code, see `bert_tf.cli.command`.
    """
    parser = command.module_parser("benchmarks.vocabulary", __doc__)
    files = {"type": existing, "nargs": "+", "required": True}
    parser.add_argument("--input", **files, help="text to learn from")
    parser.add_argument("--held-out", **files, help="unseen text")
    parser.add_argument("--size", type=int, default=8000, help="pieces in all")
    parser.add_argument("--cased", action="store_true", help="keep capitals and accents")
    return command.run("vocabulary", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    job = Job(arguments.input, arguments.size, lower_case=not arguments.cased)

    trainers = {"bert_tf": with_bert_tf}
    if importlib.util.find_spec("tokenizers"):
        trainers["Hugging Face tokenizers"] = with_tokenizers
    trainers["tensorflow-text"] = with_tensorflow_text
    fresh = multiprocessing.get_context("spawn")
    outcomes = {}
    for name, trainer in trainers.items():
        with fresh.Pool(1) as process:
            outcomes[name] = process.apply(trainer, [job])
    Console().print(_table(outcomes, arguments.held_out, job.lower_case))


def _table(outcomes: dict[str, Outcome], held_out: Sequence[Path], lower_case: bool) -> Table:
    # Imported late: the processes must not start from one that has TensorFlow in memory.
    from bert_tf.text import Tokenizer

    texts = [line for file in held_out for line in file.read_text("utf-8").split("\n")]
    table = Table("trainer", "seconds", "MiB", "pieces", "held-out text takes", "[UNK]")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, (pieces, seconds, peak_mib) in outcomes.items():
        tokenizer = Tokenizer(pieces, lower_case)
        ids = tokenizer.tokenize(texts).flat_values.numpy()
        unknown = (ids == tokenizer.unk_id).mean()
        figures = (f"{seconds:.1f}", f"{peak_mib:,}", f"{len(pieces):,}")
        table.add_row(name, *figures, f"{len(ids):,} pieces", f"{unknown:.4%}")
    return table


if __name__ == "__main__":
    sys.exit(main())
