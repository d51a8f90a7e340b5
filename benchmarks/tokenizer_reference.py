"""Compares `bert_tf.Tokenizer` with google-research/bert's own tokenizer and prints every mismatch.

    python -m benchmarks.tokenizer_reference --reference bert/tokenization.py --data data

`--reference` is that repository's `tokenization.py` (written for TensorFlow 1; nothing of it is
part of this project), `--data` a folder with vocabularies in `vocab/` and, as far as they are
there, the corpora `wikitext2/`, `novels/`, `squad/`, `wnut17/` and `codah/`. It also compares every
code point in four surroundings, made-up text in many scripts, and bytes that are not UTF-8.
Every text is compared cased and lower-cased with every vocabulary. The exit code is 1 if any
differs.
"""

import argparse
import functools
import importlib.util
import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import tensorflow as tf

from benchmarks.arguments import existing
from bert_tf.cli import command
from bert_tf.text import Tokenizer

_BATCH = 4096
_SHOWN = 20

# First and last code point of blocks of many scripts, and of signs, spaces and controls.
_BLOCKS = {
    "ASCII": (0x20, 0x7E),
    "Latin-1": (0x80, 0xFF),
    "Latin Extended": (0x100, 0x24F),
    "IPA, modifiers": (0x250, 0x2FF),
    "combining marks": (0x300, 0x36F),
    "Greek": (0x370, 0x3FF),
    "Cyrillic": (0x400, 0x52F),
    "Armenian": (0x530, 0x58F),
    "Hebrew": (0x590, 0x5FF),
    "Arabic": (0x600, 0x6FF),
    "Syriac": (0x700, 0x74F),
    "Devanagari": (0x900, 0x97F),
    "Bengali": (0x980, 0x9FF),
    "Gurmukhi": (0xA00, 0xA7F),
    "Gujarati": (0xA80, 0xAFF),
    "Oriya": (0xB00, 0xB7F),
    "Tamil": (0xB80, 0xBFF),
    "Telugu": (0xC00, 0xC7F),
    "Kannada": (0xC80, 0xCFF),
    "Malayalam": (0xD00, 0xD7F),
    "Sinhala": (0xD80, 0xDFF),
    "Thai": (0xE00, 0xE7F),
    "Lao": (0xE80, 0xEFF),
    "Tibetan": (0xF00, 0xFFF),
    "Myanmar": (0x1000, 0x109F),
    "Georgian": (0x10A0, 0x10FF),
    "Hangul jamo": (0x1100, 0x11FF),
    "Ethiopic": (0x1200, 0x137F),
    "Cherokee": (0x13A0, 0x13FF),
    "Khmer": (0x1780, 0x17FF),
    "Mongolian": (0x1800, 0x18AF),
    "Balinese": (0x1B00, 0x1B7F),
    "Vietnamese": (0x1E00, 0x1EFF),
    "Greek Extended": (0x1F00, 0x1FFF),
    "punctuation, spaces, controls": (0x2000, 0x206F),
    "letter-like": (0x2100, 0x214F),
    "CJK punctuation, kana": (0x3000, 0x30FF),
    "CJK": (0x4E00, 0x9FFF),
    "Hangul": (0xAC00, 0xD7A3),
    "CJK compatibility": (0xF900, 0xFAFF),
    "presentation forms": (0xFB00, 0xFDFF),
    "variation selectors, half marks": (0xFE00, 0xFE6F),
    "full width": (0xFF00, 0xFFEF),
    "specials": (0xFFF0, 0xFFFF),
    "Gothic": (0x10330, 0x1034F),
    "Deseret": (0x10400, 0x1044F),
    "Kaithi": (0x11080, 0x110CF),
    "musical": (0x1D150, 0x1D1FF),
    "mathematical": (0x1D400, 0x1D7FF),
    "emoji": (0x1F300, 0x1FAFF),
    "CJK extension B": (0x20000, 0x2A6DF),
    "CJK compatibility supplement": (0x2F800, 0x2FA1F),
    "tags": (0xE0000, 0xE007F),
    "variation selectors supplement": (0xE0100, 0xE01EF),
}


def main() -> int:
    """Runs every comparison for every vocabulary, cased and lower-cased.

    Returns:
        The exit code, see `bert_tf.cli.command`; 1 if anything differed.
    """
    parser = command.module_parser("benchmarks.tokenizer_reference", __doc__)
    parser.add_argument("--reference", type=existing, required=True, help="path of tokenization.py")
    parser.add_argument(
        "--data", type=existing, required=True, help="folder of vocabularies and texts"
    )
    parser.add_argument("--only", default="", help="compare only the sets whose name holds this")
    return command.run("tokenizer_reference", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    reference = load_reference(arguments.reference)
    mismatches = 0
    for name, texts in text_sets(arguments.data):
        if arguments.only not in name:
            continue
        for lower_case in (True, False):
            mismatches += _compare(name, texts, reference, arguments.data / "vocab", lower_case)
    print(f"mismatches in all: {mismatches}")
    if mismatches:
        sys.exit(1)


def load_reference(path: Path) -> ModuleType:
    """The reference's module, with TensorFlow 1's names where it looks for `tensorflow`."""
    spec = importlib.util.spec_from_file_location("reference_tokenization", path)
    module = importlib.util.module_from_spec(spec)
    tensorflow = sys.modules["tensorflow"]
    sys.modules["tensorflow"] = tf.compat.v1
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules["tensorflow"] = tensorflow
    return module


def _compare(
    name: str,
    texts: Callable[[], Iterator[str | bytes]],
    reference: ModuleType,
    vocabularies: Path,
    lower_case: bool,
) -> int:
    """Compares the ids of `texts` for every vocabulary and returns the number that differ."""
    basic = reference.BasicTokenizer(do_lower_case=lower_case)
    pairs = [_pair(reference, path, lower_case) for path in sorted(vocabularies.glob("*.txt"))]
    started, count, mismatches = time.monotonic(), 0, 0
    remaining = texts()
    while batch := [*itertools.islice(remaining, _BATCH)]:
        count += len(batch)
        words = [basic.tokenize(text) for text in batch]
        for vocabulary, piece_ids, tokenizer in pairs:
            got = tokenizer.tokenize(tf.constant(batch))
            splits, values = got.row_splits.numpy(), got.values.numpy()
            for row, (text, text_words) in enumerate(zip(batch, words, strict=True)):
                expected = [each for word in text_words for each in piece_ids(word)]
                actual = values[splits[row] : splits[row + 1]].tolist()
                if actual != expected:
                    mismatches += 1
                    if mismatches <= _SHOWN:
                        print(f"  {vocabulary}: {text!a}: {actual}, reference {expected}")
    case = "lower-cased" if lower_case else "cased"
    print(
        f"{name}, {case}: {count} texts x {len(pairs)} vocabularies, "
        f"{mismatches} mismatches, {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return mismatches


def _pair(
    reference: ModuleType, path: Path, lower_case: bool
) -> tuple[str, Callable[[str], list[int]], Tokenizer]:
    """The vocabulary's name, the reference's ids of a word (remembered), and our tokenizer."""
    vocabulary = reference.load_vocab(str(path))
    wordpiece = reference.WordpieceTokenizer(vocab=vocabulary)

    @functools.cache
    def piece_ids(word: str) -> list[int]:
        return reference.convert_tokens_to_ids(vocabulary, wordpiece.tokenize(word))

    return path.name, piece_ids, _tokenizer(path, lower_case)


@functools.cache
def _tokenizer(path: Path, lower_case: bool) -> Tokenizer:
    return Tokenizer(path, lower_case=lower_case)


def text_sets(data: Path) -> Iterator[tuple[str, Callable[[], Iterator[str | bytes]]]]:
    """Names and makers of the texts to compare; corpora that `data` lacks are left out."""
    for name, around in {
        "alone": "{}",
        "inside a word": "un{}able",
        "next to spaces": "the {} end",
        "next to punctuation": "so,{}!",
    }.items():
        yield f"every code point {name}", functools.partial(_code_points, around)
    yield "pieces of the vocabularies", lambda: _pieces(data / "vocab")
    yield "words of one script", _words_of_one_script
    yield "characters of all scripts", _characters_of_all_scripts
    yield "marks in any order", _marks
    yield "words of 1 to 1000 characters", _long_words
    yield "bytes that are not UTF-8", _broken
    yield "emoji sequences", _emoji
    if (data / "novels").is_dir():
        yield "novels", lambda: _paragraphs(data / "novels", "\n\n")
    if (data / "wikitext2").is_dir():
        yield "WikiText-2", lambda: _paragraphs(data / "wikitext2", "\n")
    if (data / "squad").is_dir():
        yield "SQuAD", lambda: _squad(data / "squad")
    if (data / "wnut17").is_dir():
        yield "WNUT-17", lambda: _sentences(data / "wnut17")
    if (data / "codah").is_dir():
        yield "CODAH", lambda: _paragraphs(data / "codah", "\n")


def _code_points(around: str) -> Iterator[str]:
    for code_point in itertools.chain(range(0xD800), range(0xE000, 0x110000)):
        yield around.format(chr(code_point))


def _pieces(vocabularies: Path) -> Iterator[str]:
    for path in sorted(vocabularies.glob("*.txt")):
        for piece in path.read_text(encoding="utf-8").split("\n"):
            yield f"{piece} un{piece.removeprefix('##')} {piece}able"


def _from_block(draw: random.Random, block: tuple[int, int]) -> str:
    return chr(draw.randint(*block))


def _words_of_one_script() -> Iterator[str]:
    draw = random.Random(1)
    for _, block in _BLOCKS.items():
        for _ in range(400):
            words = draw.randint(1, 8)
            yield " ".join(
                "".join(_from_block(draw, block) for _ in range(draw.randint(1, 12)))
                for _ in range(words)
            )


def _characters_of_all_scripts() -> Iterator[str]:
    draw = random.Random(2)
    blocks = [*_BLOCKS.values()]
    ascii_and_marks = [_BLOCKS["ASCII"], _BLOCKS["Greek"], _BLOCKS["combining marks"]]
    for _ in range(40_000):
        few = draw.sample(blocks, 3) + ascii_and_marks
        yield "".join(_from_block(draw, draw.choice(few)) for _ in range(draw.randint(1, 40)))


def _marks() -> Iterator[str]:
    """Letters with marks of all classes, including those that stripping accents leaves."""
    draw = random.Random(3)
    marks = (
        "\u0300\u0301\u0323\u0327\u0345\u034f\u0591\u05b0\u064b\u0651\u0670\u093c\u094d\u09be\u0f71"
        "\u1b44\u1baa\u20dd\u302a\u302e\u302f\u3099\ua953\u200d\ufe0f\U0001d165\U0001d16d\U0001d16e"
        "\U00011133\U000111c0\U0001135f\U0001d15e\U0001d160"
    )
    letters = "aeİIıΣσς'.-\u00ad\uac00\u1100\u1161\u0e33ǅ \t"
    for _ in range(60_000):
        size = draw.randint(1, 14)
        yield "".join(draw.choice(draw.choice((marks, letters))) for _ in range(size))


def _long_words() -> Iterator[str]:
    draw = random.Random(4)
    for size in range(1, 1001):
        for character in "aé\uac00\u0e01中İß\u0301":
            yield character * size
            yield f"so {character * size}. Then {'b' * draw.randint(1, 300)}"
            yield "".join(draw.choice((character, "a", "\u0301", "\u200d")) for _ in range(size))


def _broken() -> Iterator[bytes]:
    draw = random.Random(5)
    pieces = [
        b"a", b" ", b",", b"\x00", b"\x80", b"\xbf", b"\xc0", b"\xc1", b"\xc3", b"\xc3\xa9",
        b"\xe0", b"\xe0\x80", b"\xe0\xa0", b"\xe4\xb8", b"\xe4\xb8\xad", b"\xed", b"\xed\xa0\x80",
        b"\xed\xbf\xbf", b"\xef\xbb\xbf", b"\xef\xbf\xbd", b"\xf0", b"\xf0\x80", b"\xf0\x9f",
        b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80", b"\xf4\x8f\xbf\xbf", b"\xf4\x90", b"\xf4\x90\x80\x80",
        b"\xf5", b"\xf8", b"\xfe", b"\xff",
    ]  # fmt: skip
    for _ in range(60_000):
        yield b"".join(draw.choice(pieces) for _ in range(draw.randint(0, 12)))
    for _ in range(20_000):
        yield bytes(draw.randrange(256) for _ in range(draw.randint(0, 30)))


def _emoji() -> Iterator[str]:
    draw = random.Random(6)
    joiners = ["", "\u200d", "\ufe0f", "\ufe0f\u200d", "\u20e3", "\U0001f3fd", " ", "a"]
    for _ in range(20_000):
        yield "".join(
            _from_block(draw, draw.choice(((0x1F300, 0x1FAFF), (0x2600, 0x27BF), (0x23, 0x39))))
            + draw.choice(joiners)
            for _ in range(draw.randint(1, 8))
        )


def _paragraphs(folder: Path, separator: str) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        yield from path.read_text(encoding="utf-8").split(separator)


def _squad(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.json")):
        for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                yield paragraph["context"]
                for question in paragraph["qas"]:
                    yield question["question"]


def _sentences(folder: Path) -> Iterator[str]:
    """Each word, and each sentence with its words joined by spaces."""
    for path in sorted(folder.iterdir()):
        for sentence in path.read_text(encoding="utf-8").split("\n\n"):
            words = [line.split("\t")[0] for line in sentence.splitlines()]
            yield " ".join(words)
            yield from words


if __name__ == "__main__":
    sys.exit(main())
