"""Counting the words of text; memory grows only with the number of distinct words."""

import codecs
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path

import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.errors import UserError
from bert_tf.io.files import check_there, open_maybe_gzipped
from bert_tf.io.vocabulary import TokenizerSettings
from bert_tf.text import characters, cleaning

OnProgress = Callable[[str, int, int], None]  # gets a description, the amount done, the total
UNSPELLABLE = chr(characters.UNKNOWN)
_BLOCK_BYTES = 1 << 20
_LONGEST_RUN = 2 * _BLOCK_BYTES  # a block ends after it even without a space or a new line


def count_words(
    files: Sequence[Path], settings: TokenizerSettings, progress: OnProgress | None = None
) -> Counter[str]:
    """The number of times each word occurs in `files`, UTF-8 text, plain or gzipped.

    Words of over 200 characters, which become [UNK] with any vocabulary, count as UNSPELLABLE.
    """
    counts: Counter[str] = Counter()
    for file in files:
        check_there(file, "text file")
    sizes = [file.stat().st_size for file in files]
    for before, file in zip(accumulate(sizes, initial=0), files, strict=False):
        for text, position in _blocks(file):
            counts.update(_words(text.split("\n"), settings))
            if progress is not None:
                progress("counting words", before + position, sum(sizes))
    return counts


def count_words_of_texts(texts: Iterable[str], settings: TokenizerSettings) -> Counter[str]:
    """As `count_words`, of an iterable of texts."""
    counts: Counter[str] = Counter()
    lines: list[str] = []
    characters = 0
    for text in texts:
        lines += text.split("\n")
        characters += len(text)
        if characters >= _BLOCK_BYTES:
            counts.update(_words(lines, settings))
            lines, characters = [], 0
    if lines:
        counts.update(_words(lines, settings))
    return counts


def _blocks(file: Path) -> Iterator[tuple[str, int]]:
    """Parts of the text that end between words, and how far into the file each one reaches."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines, rest = 0, ""
    try:
        with open_maybe_gzipped(file, "text file") as (content, raw):
            data = content.read(_BLOCK_BYTES)
            if not data:
                raise UserError(f"text file is empty: {file}")
            while data:
                text = rest + decoder.decode(data)
                end = max(text.rfind(" "), text.rfind("\n")) + 1
                if end == 0 and len(text) > _LONGEST_RUN:
                    # Text without spaces, such as Chinese. At worst one word is cut in two.
                    end = len(text)
                yield text[:end], raw.tell()
                rest = text[end:]
                lines += data.count(b"\n")
                data = content.read(_BLOCK_BYTES)
            yield rest + decoder.decode(b"", final=True), raw.tell()
    except UnicodeDecodeError as error:
        line = lines + error.object.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"text file is not UTF-8: {file}, line {line} "
            f"(byte 0x{error.object[error.start]:02x}); convert it to UTF-8"
        ) from None


def _words(texts: Sequence[str], settings: TokenizerSettings) -> Iterator[str]:
    """The words of `texts`, cleaned."""
    parts, starts, ends, counts = (each.numpy().tolist() for each in _split(settings)(texts))
    kept_whole = {*cleaning.stand_ins(settings).values()}
    letters = {} if settings.split_chinese else characters.ideographs_as_letters()
    ideographs = {letter: ideograph for ideograph, letter in letters.items()}
    bounds = zip(starts, ends, strict=True)
    for part, count in zip(parts, counts, strict=True):
        for start, end in islice(bounds, count):
            word = part[start:end].decode()
            if word not in kept_whole:
                yield UNSPELLABLE if UNSPELLABLE in word else word.translate(ideographs)


@functools.cache
def _split(settings: TokenizerSettings) -> Callable[[Sequence[str]], tuple[tf.Tensor, ...]]:
    """A function from texts to their parts, and to the words in these parts.

    It returns the bytes where the words start and end, and how many words each part has.
    """
    # WordPiece without a piece that could match: every word comes out whole, as one [UNK].
    op = tf_text.FastWordpieceTokenizer(["[UNK]", characters.STAND_INS[0]])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def split(texts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        with tf.device("/CPU:0"):
            parts = cleaning.prepare(texts, settings).parts
            _, starts, ends = op.tokenize_with_offsets(parts)
            return parts, starts.values, ends.values, starts.row_lengths()

    return split
