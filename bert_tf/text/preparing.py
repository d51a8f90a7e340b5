"""Preparing texts for WordPiece.

Clean texts stay as they are. In other texts, only the words that need it are cleaned.

Two regular expressions decide whether a text is clean, at a small part of the cost of cleaning. A
text that is not clean is cut at its spaces, since no step of cleaning looks across a space.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from bert_tf.text import characters, cleaning
from bert_tf.text.rows import owners, positions, splits_of

# A run of characters without a certain end of a word, so long that a word in it may be too long.
_LONG_RUN = rf"(?s).*[^\t\n\r ]{{{cleaning.MAX_WORD_CHARACTERS + 1}}}.*"


class Prepared(NamedTuple):
    """Texts in parts for WordPiece; a part is a whole text or one of its words.

    Attributes:
        parts: string [parts].
        splits: int32 [batch + 1], the first part of each text.
        part_starts: int32 [parts], the byte of the text where the part starts.
        first_bytes: int32 [parts], where the bytes of a cleaned part start in `starts` and `ends`;
            -1 for a part that was clean.
        starts, ends: int32 [bytes of the cleaned parts], the range of the uncleaned part that each
            byte stands for.
    """

    parts: tf.Tensor
    splits: tf.Tensor
    part_starts: tf.Tensor
    first_bytes: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def prepare(texts: tf.Tensor, lower_case: bool, whole: Sequence[str] = ()) -> Prepared:
    """Prepares `texts`, string [batch]; the other arguments are those of `cleaning.clean`.

    >>> prepared = prepare(tf.constant(["The cat", "A café"]), lower_case=True)
    >>> prepared.parts.numpy().tolist()  # only the second text is cut and cleaned
    [b'the cat', b'a', b'cafe']
    >>> prepared.splits.numpy().tolist()
    [0, 1, 3]
    """
    batch = tf.size(texts)
    lowered = _lowered(texts, lower_case)
    dirty = _is_dirty(texts, lower_case, whole) | tf.strings.regex_full_match(texts, _LONG_RUN)

    def uncut() -> Prepared:
        zeros = tf.zeros([batch], tf.int32)
        return Prepared(lowered, tf.range(batch + 1), zeros, zeros - 1, zeros[:0], zeros[:0])

    def cut() -> Prepared:
        rows = positions(dirty)
        words = tf.strings.split(tf.gather(texts, rows), " ")
        cleaned = _clean_words(words.with_row_splits_dtype(tf.int32), lower_case, whole)
        counts = cleaned.splits[1:] - cleaned.splits[:-1]
        splits = splits_of(
            tf.tensor_scatter_nd_update(tf.ones([batch], tf.int32), rows[:, None], counts)
        )
        first = tf.gather(splits, rows)
        places = tf.ragged.range(first, first + counts).values
        # Of the two that take the place of a cut text's first word, the later one stays.
        parts = tf.dynamic_stitch([splits[:-1], places], [lowered, cleaned.parts])

        def of_parts(of_texts: int, of_words: tf.Tensor) -> tf.Tensor:
            return tf.tensor_scatter_nd_update(
                tf.fill(tf.shape(parts), of_texts), places[:, None], of_words
            )

        return Prepared(
            parts,
            splits,
            of_parts(0, cleaned.part_starts),
            of_parts(-1, cleaned.first_bytes),
            cleaned.starts,
            cleaned.ends,
        )

    return Prepared(*tf.cond(tf.reduce_any(dirty), cut, uncut))


def _clean_words(words: tf.RaggedTensor, lower_case: bool, whole: Sequence[str]) -> Prepared:
    """Prepares texts given as their words, string [batch, (words)]."""
    sizes = tf.strings.length(words.values)
    dirty = _is_dirty(words.values, lower_case, whole) | (sizes > cleaning.MAX_WORD_CHARACTERS)
    rows = positions(dirty)
    cleaned = cleaning.clean(tf.gather(words.values, rows), lower_case, whole)
    texts = tf.tensor_scatter_nd_update(
        _lowered(words.values, lower_case), rows[:, None], cleaned.texts
    )
    first_bytes = tf.tensor_scatter_nd_update(
        tf.fill(tf.shape(sizes), -1), rows[:, None], cleaned.byte_splits[:-1]
    )
    # A word starts after those before it in its text and a space after each.
    starts = splits_of(sizes + 1)
    text_starts = tf.gather(starts, words.row_splits)
    part_starts = starts[:-1] - tf.gather(text_starts, owners(words.row_splits))
    return Prepared(texts, words.row_splits, part_starts, first_bytes, cleaned.starts, cleaned.ends)


def _lowered(texts: tf.Tensor, lower_case: bool) -> tf.Tensor:
    # ASCII only, byte by byte and so the same in any locale.
    return tf.strings.lower(texts) if lower_case else texts


def _is_dirty(texts: tf.Tensor, lower_case: bool, whole: Sequence[str]) -> tf.Tensor:
    """Which texts hold a character or string that cleaning treats: bool [batch]."""
    plain = characters.plain_characters(lower_case)
    dirty = ~tf.strings.regex_full_match(texts, f"[{plain}]*")
    if whole:
        strings = "|".join(rf"\Q{string}\E" for string in whole)
        dirty |= tf.strings.regex_full_match(texts, f"(?s).*(?:{strings}).*")
    return dirty
