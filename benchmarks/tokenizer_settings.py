"""Compares `bert_tf.Tokenizer`, with each of its settings, with Hugging Face's `tokenizers`.

    python -m benchmarks.tokenizer_settings --data data

`--data` is a folder with vocabularies in `vocab/` and, as far as they are there, the corpora of
`benchmarks.tokenizer_reference`. Ids and byte offsets are compared, of every code point inside a
word and on its own, and of the corpora, with one cased and one uncased vocabulary. The peer is
composed of `BertNormalizer`, `BertPreTokenizer`, `WordPiece` and `AddedToken`, as transformers
composes its fast tokenizer. The exit code is 1 if any text differs.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arguments import existing
from benchmarks.tokenizer_reference import text_sets
from bert_tf.cli import command
from bert_tf.io.vocabulary import SPECIAL_TOKENS
from bert_tf.text import Tokenizer

_BATCH = 4096
_SHOWN = 5
_ADDED = ("<e1>", "cool-token", "New York")
# The settings for a folder of transformers that sets nothing else.
_FOLDER = {"special_tokens": "whole", "longest_word": 100, "normalizer": "huggingface"}
_SETTINGS: dict[str, dict[str, Any]] = {
    "lower-cased": {},
    "lower-cased, accents kept": {"strip_accents": False},
    "lower-cased, ideographs joined": {"split_chinese": False},
    "lower-cased, accents kept, ideographs joined": {
        "strip_accents": False,
        "split_chinese": False,
    },
    "cased": {"lower_case": False},
    "cased, accents stripped": {"lower_case": False, "strip_accents": True},
    "cased, ideographs joined": {"lower_case": False, "split_chinese": False},
    "words of 20 characters": {"longest_word": 20},
    "added tokens": {"added_tokens": _ADDED},
    "exact tokens": {"exact_tokens": _ADDED, "lower_case": False},
}
# Sets of `text_sets` that are compared: those whose texts are real, and every code point.
_SETS = ("alone", "inside a word", "novels", "WikiText-2", "SQuAD", "WNUT-17", "CODAH")


def main() -> int:
    """Runs every comparison; gives the exit code (`bert_tf.cli.command`)."""
    parser = command.module_parser("benchmarks.tokenizer_settings", __doc__)
    parser.add_argument(
        "--data", type=existing, required=True, help="folder of vocabularies and texts"
    )
    parser.add_argument("--only", default="", help="compare only the sets whose name holds this")
    return command.run("tokenizer_settings", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    mismatches = 0
    for name, texts in text_sets(arguments.data):
        if name.endswith(_SETS) and arguments.only in name:
            for setting, options in _SETTINGS.items():
                mismatches += _compare(name, texts, arguments.data / "vocab", setting, options)
    print(f"mismatches in all: {mismatches}")
    if mismatches:
        sys.exit(1)


def _compare(
    name: str,
    texts: Callable[[], Iterator[str | bytes]],
    vocabularies: Path,
    setting: str,
    options: dict[str, Any],
) -> int:
    """Compares ids and offsets of `texts` with one setting; returns how many texts differ."""
    options = {"lower_case": True, **_FOLDER, **options}
    kind = "uncased" if options["lower_case"] else "cased"
    path = sorted(vocabularies.glob(f"*{'' if kind == 'cased' else 'un'}cased*.txt"))[0]
    pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    added = [*options.get("added_tokens", ()), *options.get("exact_tokens", ())]
    pieces += [each for each in added if each not in pieces]
    ours, peer = Tokenizer(pieces, **options), _peer(pieces, options)
    started, count, mismatches = time.monotonic(), 0, 0
    remaining = texts()
    while batch := [*itertools.islice(remaining, _BATCH)]:
        count += len(batch)
        ids, starts, ends = ours.tokenize_with_offsets(batch)
        found = np.stack([ids.values, starts.values, ends.values], axis=1)
        rows = np.split(found, ids.row_splits.numpy()[1:-1])
        encoded = peer.encode_batch(batch, add_special_tokens=False)
        for text, row, encoding in zip(batch, rows, encoded, strict=True):
            # Where each character begins in UTF-8.
            places = np.cumsum([0, *(len(character.encode()) for character in text)])
            offsets = np.reshape(encoding.offsets, (-1, 2)).astype(int)
            expected = np.column_stack([encoding.ids, places[offsets]]).astype(int)
            if not np.array_equal(row, expected):
                mismatches += 1
                if mismatches <= _SHOWN:
                    print(f"  {text!a}: {row.tolist()}, tokenizers {expected.tolist()}")
    print(
        f"{name}, {setting}: {count} texts, {mismatches} mismatches, "
        f"{time.monotonic() - started:.0f} s",
        flush=True,
    )
    return mismatches


def _peer(pieces: list[str], options: dict[str, Any]) -> Any:
    """The tokenizer of `tokenizers` with these settings."""
    from tokenizers import AddedToken, normalizers, pre_tokenizers
    from tokenizers import Tokenizer as Peer
    from tokenizers.models import WordPiece

    ids = {piece: number for number, piece in enumerate(pieces)}
    longest = options["longest_word"]
    peer = Peer(WordPiece(vocab=ids, unk_token="[UNK]", max_input_chars_per_word=longest))
    peer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=options.get("split_chinese", True),
        strip_accents=options.get("strip_accents"),
        lowercase=options["lower_case"],
    )
    peer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    peer.add_special_tokens(list(SPECIAL_TOKENS))
    for name, is_normalized in (("added_tokens", True), ("exact_tokens", False)):
        for token in options.get(name, ()):
            peer.add_tokens([AddedToken(token, normalized=is_normalized)])
    return peer


if __name__ == "__main__":
    sys.exit(main())
