"""BERT's text cleaning inside the graph, which keeps the place of every character in the original.

The steps are those of google-research/bert, `tokenization.BasicTokenizer`. They work on code
points, with integer ops over the whole batch at once. Nearly all steps are one lookup in a table;
the others depend on neighbouring characters.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from bert_tf.text import characters
from bert_tf.text.characters import CharacterTable, Lookup
from bert_tf.text.rows import owners, positions, splits_of, starts_row

# The reference gives up on a word of more characters than this: it becomes [UNK].
MAX_WORD_CHARACTERS = 200

_CAPITAL_SIGMA, _FINAL_SIGMA = 0x3A3, 0x3C2


class CleanedTexts(NamedTuple):
    """Cleaned texts, and for each of their bytes the range of the original text it stands for.

    Attributes:
        texts: string [batch].
        byte_splits: int32 [batch + 1], where the bytes of each text lie in the next two.
        starts: int32 [bytes], byte of the original text where the byte's character starts.
        ends: int32 [bytes], where it ends (exclusive), together with accents dropped after it.
    """

    texts: tf.Tensor
    byte_splits: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


class _Characters(NamedTuple):
    """The characters of a batch of texts, one text after the other.

    Attributes:
        code_points: int32 [characters].
        splits: int32 [batch + 1], where each text starts.
        starts, ends: int32 [characters], bytes of the original text.
    """

    code_points: tf.Tensor
    splits: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor

    def rows(self) -> tf.Tensor:
        """The text of each character: int32 [characters]."""
        return owners(self.splits)

    def take(self, indices: tf.Tensor, splits: tf.Tensor) -> "_Characters":
        parts = (self.code_points, self.starts, self.ends)
        code_points, starts, ends = (tf.gather(each, indices) for each in parts)
        return _Characters(code_points, splits, starts, ends)


def clean(texts: tf.Tensor, lower_case: bool, whole: Sequence[str] = ()) -> CleanedTexts:
    """Cleans `texts`, string [batch], so that WordPiece splits them as the reference does.

    Bytes that are not UTF-8 are dropped as Python's `decode("utf-8", "ignore")` does.

    >>> cleaned = clean(tf.constant(["Café!"]), lower_case=True)
    >>> cleaned.texts.numpy().tolist()
    [b'cafe!']
    >>> cleaned.starts.numpy().tolist()
    [0, 1, 2, 3, 5]
    >>> cleaned.ends.numpy().tolist()  # the é of the original has two bytes
    [1, 2, 3, 5, 6]

    Args:
        texts: the originals.
        lower_case: also lower-case and strip accents.
        whole: strings to keep as one word; the cleaned text has for each the character of
            `characters.STAND_INS` at the same place.
    """
    table = characters.cleaning_table(lower_case)
    text = _decode(texts)
    if whole:
        text = _with_wholes(text, whole)
    found = table.lookup(text.code_points)
    if lower_case:
        text, found = _with_final_sigmas(text, found, table)
        text, found = _with_marks_in_order(text, found, table)
        text = text._replace(ends=_ends_with_accents(text, found))
    text, kinds = _replaced(text, found, table)
    return _encode(_with_long_words_unknown(text, kinds & characters.KIND))


def _decode(texts: tf.Tensor) -> _Characters:
    decoded, offsets = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="ignore")
    code_points, starts = decoded.values, tf.cast(offsets.values, tf.int32)
    splits = tf.cast(decoded.row_splits, tf.int32)
    return _Characters(code_points, splits, starts, starts + _utf8_length(code_points))


def _utf8_length(code_points: tf.Tensor) -> tf.Tensor:
    longer = [tf.cast(code_points >= first, tf.int32) for first in (0x80, 0x800, 0x10000)]
    return 1 + tf.add_n(longer)


def _with_wholes(text: _Characters, whole: Sequence[str]) -> _Characters:
    """Each of the strings `whole` becomes one character, WHOLE + its place."""
    rows = text.rows()
    code_points, ends = text.code_points, text.ends
    absorbed = tf.zeros_like(code_points, tf.bool)
    for place, string in enumerate(whole):
        last = len(string) - 1
        here = _shifted(rows, last, -1) == rows
        for distance, character in enumerate(string):
            here &= _shifted(text.code_points, distance, -1) == ord(character)
        code_points = tf.where(here, characters.WHOLE + place, code_points)
        ends = tf.where(here, _shifted(text.ends, last, -1), ends)
        for distance in range(1, len(string)):
            absorbed |= _shifted(here, -distance, False)
    kept = ~absorbed
    text = text._replace(code_points=code_points, ends=ends)
    return text.take(positions(kept), _split_again(text.splits, tf.cast(kept, tf.int32)))


def _shifted(values: tf.Tensor, distance: int, beyond: int | bool) -> tf.Tensor:
    """At each position the value `distance` further on, or the value `beyond` the ends."""
    width = tf.minimum(abs(distance), tf.size(values))
    fill = tf.fill([width], tf.constant(beyond, values.dtype))
    if distance >= 0:
        return tf.concat([values[width:], fill], axis=0)
    return tf.concat([fill, values[: tf.size(values) - width]], axis=0)


def _split_again(splits: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Where the texts start, once each character has been replaced by `lengths` others."""
    return tf.gather(splits_of(lengths), splits)


def _with_final_sigmas(
    text: _Characters, found: Lookup, table: CharacterTable
) -> tuple[_Characters, Lookup]:
    """Lower-cases those capital sigmas that end a word to ς; the table makes the others σ.

    Unicode's rule, and Python's: a cased letter before it and none after it, looking through
    ignorable characters (and through those that cleaning deletes).
    """
    capital = text.code_points == _CAPITAL_SIGMA

    def some_are_final() -> tuple[tf.Tensor, ...]:
        counts = found.is_seen() & ~found.has(characters.CASE_IGNORABLE)
        # The characters that count, between two entries that stand for the ends of the batch. A
        # sigma itself counts, so that its neighbours come before and after it in the list.
        listed = tf.concat([[-1], positions(counts), [-1]], axis=0)
        sigmas = positions(capital)
        place = tf.gather(tf.cumsum(tf.cast(counts, tf.int32)), sigmas)
        rows = text.rows()

        def cased(neighbours: tf.Tensor) -> tf.Tensor:
            at = tf.maximum(neighbours, 0)
            same_text = tf.gather(rows, at) == tf.gather(rows, sigmas)
            return (neighbours >= 0) & same_text & tf.gather(found.has(characters.CASED), at)

        before, after = tf.gather(listed, place - 1), tf.gather(listed, place + 1)
        final = cased(before) & ~cased(after)
        lowered = tf.where(final, _FINAL_SIGMA, _CAPITAL_SIGMA)
        code_points = tf.tensor_scatter_nd_update(text.code_points, sigmas[:, None], lowered)
        return code_points, *_fields(table.lookup(code_points))

    code_points, *fields = tf.cond(
        tf.reduce_any(capital), some_are_final, lambda: (text.code_points, *_fields(found))
    )
    return text._replace(code_points=code_points), Lookup(*fields)


def _fields(found: Lookup) -> tuple[tf.Tensor, ...]:
    return found.first, found.length, found.properties


def _with_marks_in_order(
    text: _Characters, found: Lookup, table: CharacterTable
) -> tuple[_Characters, Lookup]:
    """Sorts runs of combining marks by their class, the second half of Unicode's NFD.

    The order matters only where two marks remain that cleaning does not drop. This is very rare, so
    the sorting is done only if there is such a mark at all. After it, the marks of a run no longer
    have places of their own in the original text: they share the range of the run.
    """

    def sort() -> tuple[tf.Tensor, ...]:
        # Characters that cleaning deletes would split a run.
        seen = found.is_seen()
        present = text.take(positions(seen), _split_again(text.splits, tf.cast(seen, tf.int32)))
        decomposition = characters.decomposition_table()
        parts, combining = _replaced(
            present, decomposition.lookup(present.code_points), decomposition
        )
        is_mark = tf.cast(combining > 0, tf.int64)
        starts_text = tf.cast(starts_row(parts.splits), tf.int64)
        run = tf.cumsum(tf.maximum(1 - is_mark, starts_text))
        by_class = run * (characters.MAX_COMBINING + 1) + tf.cast(combining, tf.int64)
        order = tf.argsort(by_class, stable=True)
        # Numbers the marks of a run apart from the character that they follow.
        group = 2 * run + is_mark
        code_points = tf.gather(parts.code_points, order)
        starts = tf.gather(tf.math.segment_min(parts.starts, group), group)
        ends = tf.gather(tf.math.segment_max(parts.ends, group), group)
        return code_points, parts.splits, starts, ends, *_fields(table.lookup(code_points))

    code_points, splits, starts, ends, *fields = tf.cond(
        tf.reduce_any(found.has(characters.LASTING_MARK)), sort, lambda: (*text, *_fields(found))
    )
    return _Characters(code_points, splits, starts, ends), Lookup(*fields)


def _ends_with_accents(text: _Characters, found: Lookup) -> tf.Tensor:
    """Where each character ends if the accents that are dropped after it are part of it: int32."""
    seen = positions(found.is_seen())
    rows = tf.gather(text.rows(), seen)
    follows = tf.gather(found.has(characters.ACCENT), seen) & (_shifted(rows, -1, -1) == rows)
    heads = positions(~follows)
    # A head's accents are all before the next head.
    last = tf.concat([heads, [tf.size(seen)]], axis=0)[1:] - 1
    ends = tf.gather(text.ends, tf.gather(seen, last))
    return tf.tensor_scatter_nd_update(text.ends, tf.gather(seen, heads)[:, None], ends)


def _replaced(
    text: _Characters, found: Lookup, table: CharacterTable
) -> tuple[_Characters, tf.Tensor]:
    """Replaces each character by its entry in the table: none, itself, another, or several.

    Returns:
        The characters, and the properties that each of them has in the table, int32 [characters].
    """
    splits = splits_of(found.length)
    origin = owners(splits)
    taken = text.take(origin, tf.gather(splits, text.splits))
    first = tf.gather(found.first, origin)
    distance = tf.range(tf.size(origin)) - tf.gather(splits, origin)
    code_points, properties = table.replacement(first + distance)
    stays = first == 0
    code_points = tf.where(stays, taken.code_points, code_points)
    properties = tf.where(stays, tf.gather(found.properties, origin), properties)
    return taken._replace(code_points=code_points), properties


def _with_long_words_unknown(text: _Characters, kinds: tf.Tensor) -> _Characters:
    """Makes each word over the limit one that no piece matches."""
    longest = tf.reduce_max(text.splits[1:] - text.splits[:-1])

    def marked() -> tf.Tensor:
        in_word = kinds == characters.IN_WORD
        before = _shifted(in_word, -1, False) & ~starts_row(text.splits)
        word = tf.cumsum(tf.cast(in_word & ~before, tf.int32))
        # Number 0 is no word: it has what comes before the first.
        sizes = tf.math.segment_sum(tf.cast(in_word, tf.int32), word)
        too_long = in_word & tf.gather(sizes > MAX_WORD_CHARACTERS, word)
        return tf.where(too_long, characters.UNKNOWN, text.code_points)

    code_points = tf.cond(longest > MAX_WORD_CHARACTERS, marked, lambda: text.code_points)
    return text._replace(code_points=code_points)


def _encode(text: _Characters) -> CleanedTexts:
    code_points = tf.RaggedTensor.from_row_splits(text.code_points, text.splits, validate=False)
    sizes = _utf8_length(text.code_points)
    byte_starts = splits_of(sizes)
    character = owners(byte_starts)
    return CleanedTexts(
        texts=tf.strings.unicode_encode(code_points, "UTF-8"),
        byte_splits=tf.gather(byte_starts, text.splits),
        starts=tf.gather(text.starts, character),
        ends=tf.gather(text.ends, character),
    )
