"""Compares the tokenizer of LiteRT files with `bert_tf.Tokenizer` and counts every mismatch.

    python -m benchmarks.lite_tokens --data data

`--data` is a folder with vocabularies in `vocab/` and, as far as they are there, corpora; the texts
are those of `benchmarks.tokenizer_reference`. Every text is compared cased and lower-cased with
every vocabulary, ids and ranges. The same is counted for tf-text's own normalizer in front of the
same WordPiece op, ids only. A mismatch is explained if its cause is one of the two rules that
`bert_tf.text.lite_tokenizer` leaves out. The exit code is 1 if any mismatch is not explained.
"""

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from benchmarks.arguments import existing
from benchmarks.tokenizer_reference import text_sets
from bert_tf.cli import command
from bert_tf.text import Pieces, Tokenizer, characters
from bert_tf.text.lite_tokenizer import LiteTokenizer

_BATCH = 4096
_SHOWN = 5

_TEXTS = tf.TensorSpec([None], tf.string)

# Names of the columns.
_IDS, _RANGES, _MARKS, _SIGMAS, _OTHER, _OWN = (
    "ids",
    "ranges only",
    "marks",
    "sigmas",
    "unexplained",
    "tf-text's ids",
)


def main() -> int:
    """Compares all texts for every vocabulary and prints a table.

    Returns:
        The exit code, see `bert_tf.cli.command`; 1 if a mismatch is not explained.
    """
    parser = command.module_parser("benchmarks.lite_tokens", __doc__)
    parser.add_argument(
        "--data", type=existing, required=True, help="folder of vocabularies and texts"
    )
    parser.add_argument("--only", default="", help="compare only the sets whose name holds this")
    return command.run("lite_tokens", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    paths = sorted((arguments.data / "vocab").glob("*.txt"))
    contenders = {
        lower_case: [_Contenders(path, lower_case) for path in paths]
        for lower_case in (True, False)
    }
    columns = (_IDS, _RANGES, _MARKS, _SIGMAS, _OTHER, _OWN)
    print(f"mismatches, summed over {len(paths)} vocabularies")
    print(f"{'':48} {'texts':>9} " + " ".join(f"{name:>13}" for name in columns))
    unexplained = 0
    for name, texts in text_sets(arguments.data):
        if arguments.only not in name:
            continue
        for lower_case, each in contenders.items():
            total, counts = _compare(texts(), each)
            case = "lower-cased" if lower_case else "cased"
            row = " ".join(f"{counts[column]:13}" for column in columns)
            print(f"{f'{name}, {case}':48} {total * len(each):9} {row}", flush=True)
            unexplained += counts[_OTHER]
    if unexplained:
        sys.exit(1)


class _Contenders:
    """The three tokenizers of a vocabulary.

    Args:
        vocab: the file.
        lower_case: as for `Tokenizer`.
    """

    def __init__(self, vocab: Path, lower_case: bool):
        self.vocab, self.lower_case = vocab, lower_case
        tokenizer = Tokenizer(vocab, lower_case)
        normalizer = tf_text.FastBertNormalizer(lower_case_nfd_strip_accents=lower_case)
        wordpiece = tf_text.FastWordpieceTokenizer(
            model_buffer=tf.constant(tokenizer.wordpiece_model), token_out_type=tf.int32
        )
        self.expected: Callable[[tf.Tensor], Pieces] = tokenizer.tokenize_with_offsets
        self.lite = _traced(LiteTokenizer(tokenizer).tokenize_with_offsets)
        self.own = _traced(lambda texts: wordpiece.tokenize(normalizer.normalize(texts)))


def _traced(function: Callable) -> Callable:
    return tf.function(function, input_signature=[_TEXTS], autograph=False)


def _compare(
    texts: Iterator[str | bytes], contenders: list[_Contenders]
) -> tuple[int, Counter[str]]:
    """The number of texts, and the number of mismatches for each column."""
    total, counts = 0, Counter[str]()
    while batch := [*itertools.islice(texts, _BATCH)]:
        total += len(batch)
        tensor = tf.constant(batch)
        for each in contenders:
            expected, got = each.expected(tensor), each.lite(tensor)
            wrong_ids = _differing(expected.ids, got.ids)
            wrong_ranges = {
                row
                for row in _differing(expected.starts, got.starts)
                | _differing(expected.ends, got.ends)
                if row not in wrong_ids and _differs_alone(each, batch[row])
            }
            counts[_IDS] += len(wrong_ids)
            counts[_RANGES] += len(wrong_ranges)
            counts[_OWN] += len(_differing(expected.ids, each.own(tensor)))
            for row in wrong_ids | wrong_ranges:
                cause = _cause(batch[row]) if each.lower_case else _OTHER
                counts[cause] += 1
                if cause == _OTHER and counts[_OTHER] <= _SHOWN:
                    ids = got.ids[row].numpy().tolist()
                    print(f"  {each.vocab.name}: {batch[row]!a}: {ids}, {expected.ids[row]}")
    return total, counts


def _differing(expected: tf.RaggedTensor, got: tf.RaggedTensor) -> set[int]:
    """The rows that are not equal."""
    lengths, got_lengths = expected.row_lengths().numpy(), got.row_lengths().numpy()
    if np.array_equal(lengths, got_lengths):
        values = expected.values.numpy() != got.values.numpy()
        rows = np.repeat(np.arange(len(lengths)), lengths)
        return {*rows[values].tolist()}
    pairs = zip(expected.to_list(), got.to_list(), strict=True)
    return {row for row, (first, second) in enumerate(pairs) if first != second}


def _differs_alone(contenders: _Contenders, text: str | bytes) -> bool:
    """Whether the ranges differ also in a batch of one text.

    If one text of a batch has marks to sort, `Tokenizer` decomposes the letters of all texts, and
    accents no longer belong to the ranges of pieces that were one letter.
    """
    tensor = tf.constant([text])
    pairs = zip(contenders.expected(tensor), contenders.lite(tensor), strict=True)
    return any(_differing(expected, got) for expected, got in pairs)


def _cause(text: str | bytes) -> str:
    """The left-out rule that can apply to the text; `_OTHER` if there is none."""
    text = text.decode("utf-8", "ignore") if isinstance(text, bytes) else text
    found = characters.cleaning_table(lower_case=True).lookup(tf.constant([*map(ord, text)]))
    if tf.reduce_any(found.has(characters.LASTING_MARK)):
        return _MARKS
    if any("\u03c2" in word[:-1] for word in text.lower().split()) and "\u03a3" in text:
        return _SIGMAS
    return _OTHER


if __name__ == "__main__":
    sys.exit(main())
