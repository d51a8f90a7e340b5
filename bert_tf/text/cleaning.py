"""BERT's text cleaning inside the graph, which keeps the place of every character in the original.

The steps are those of google-research/bert, `tokenization.BasicTokenizer`, on code points, with
integer ops over the whole batch at once. Nearly all steps are one lookup in a table; the others
depend on neighbouring characters. Two regular expressions decide whether a text is clean. A text
that is not clean is cut at its spaces, and only the words that need it are cleaned.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.io.vocabulary import SPECIAL_TOKENS, TokenizerSettings
from bert_tf.text import characters
from bert_tf.text.characters import CharacterTable, Lookup
from bert_tf.text.rows import counts, joined_starts, owners, positions, splits_of, starts_row
from bert_tf.text.unicode_rules import rules_of

# The reference gives up on a word of more characters than this: it becomes [UNK].
MAX_WORD_CHARACTERS = TokenizerSettings.longest_word
_CAPITAL_SIGMA, _FINAL_SIGMA = 0x3A3, 0x3C2


class Prepared(NamedTuple):
    """Texts in parts for WordPiece; a part is a whole text or one of its words."""

    parts: tf.Tensor  # string [parts]
    splits: tf.Tensor  # int32 [batch + 1], the first part of each text
    part_starts: tf.Tensor  # int32 [parts], the byte of the text where the part starts
    first_bytes: tf.Tensor  # int32 [parts], a part's first byte in `starts`; -1 if it was clean
    # The range of the uncleaned part that each byte of a cleaned part stands for: int32 [bytes].
    starts: tf.Tensor
    ends: tf.Tensor


class _Characters(NamedTuple):
    """The characters of a batch of texts, one text after the other."""

    code_points: tf.Tensor  # int32 [characters]
    splits: tf.Tensor  # int32 [batch + 1], where each text starts
    starts: tf.Tensor  # int32 [characters], bytes of the original text
    ends: tf.Tensor

    def take(self, indices: tf.Tensor, splits: tf.Tensor) -> "_Characters":
        parts = (self.code_points, self.starts, self.ends)
        code_points, starts, ends = (tf.gather(each, indices) for each in parts)
        return _Characters(code_points, splits, starts, ends)

    def keep(self, kept: tf.Tensor) -> "_Characters":
        """The characters where `kept`, bool [characters], is True."""
        splits = tf.gather(splits_of(tf.cast(kept, tf.int32)), self.splits)
        return self.take(positions(kept), splits)


def prepare(texts: tf.Tensor, settings: TokenizerSettings) -> Prepared:
    """Prepares `texts`, string [batch]."""
    batch = tf.size(texts)
    lowered = _lowered(texts, settings)
    # A run of characters without whitespace, long enough to hold a word over the limit.
    long_run = rf"(?s).*[^\t\n\r ]{{{settings.longest_word + 1}}}.*"
    dirty = _is_dirty(texts, settings) | tf.strings.regex_full_match(texts, long_run)

    def uncut() -> Prepared:
        zeros = tf.zeros([batch], tf.int32)
        return Prepared(lowered, tf.range(batch + 1), zeros, zeros - 1, zeros[:0], zeros[:0])

    def cut() -> Prepared:
        rows = positions(dirty)
        uncleaned = tf.gather(texts, rows)
        whole = added_tokens(settings) | _exact_tokens(settings)
        if any(" " in each for each in whole.values()):
            words = tf.RaggedTensor.from_tensor(uncleaned[:, None])
        else:
            words = tf.strings.split(uncleaned, " ")
        cleaned = _clean_words(words.with_row_splits_dtype(tf.int32), settings)
        lengths = cleaned.splits[1:] - cleaned.splits[:-1]
        splits = splits_of(
            tf.tensor_scatter_nd_update(tf.ones([batch], tf.int32), rows[:, None], lengths)
        )
        first = tf.gather(splits, rows)
        places = tf.ragged.range(first, first + lengths).values
        # A text that was cut has two candidates for its first word; the later one stays.
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


def _clean_words(words: tf.RaggedTensor, settings: TokenizerSettings) -> Prepared:
    """Prepares texts given as their words, string [batch, (words)]."""
    sizes = tf.strings.length(words.values)
    dirty = _is_dirty(words.values, settings) | (sizes > settings.longest_word)
    rows = positions(dirty)
    cleaned, byte_splits, starts, ends = clean(tf.gather(words.values, rows), settings)
    texts = tf.tensor_scatter_nd_update(_lowered(words.values, settings), rows[:, None], cleaned)
    first_bytes = tf.tensor_scatter_nd_update(
        tf.fill(tf.shape(sizes), -1), rows[:, None], byte_splits[:-1]
    )
    part_starts = joined_starts(sizes, words.row_splits)
    return Prepared(texts, words.row_splits, part_starts, first_bytes, starts, ends)


def _lowered(texts: tf.Tensor, settings: TokenizerSettings) -> tf.Tensor:
    # ASCII only, byte by byte and so the same in any locale.
    return tf.strings.lower(texts) if settings.lower_case else texts


def _is_dirty(texts: tf.Tensor, settings: TokenizerSettings) -> tf.Tensor:
    """Which texts may hold a character or string that cleaning changes: bool [batch]."""
    special = _special_tokens(settings)
    first, second = ("".join(each[place] for each in special) for place in (0, 1))
    plain, other = (
        characters.plain_characters(*_rules(settings), without=each)
        for each in (first, first + second)
    )
    pattern = f"[{plain}]*"
    if special:
        # No first character of a special token is followed by a second character of one.
        first = f"[{re.escape(first)}]"
        pattern = f"(?:[{plain}]|{first}+[{other}])*{first}*"
    dirty = ~tf.strings.regex_full_match(texts, pattern)
    if settings.exact_tokens:
        dirty |= _contains(texts, settings.exact_tokens)
    if added := added_tokens(settings):
        # For a text of plain characters, lower-casing is all that cleaning does.
        dirty |= _contains(_lowered(texts, settings), added.values())
    return dirty


def _contains(texts: tf.Tensor, strings: Iterable[str]) -> tf.Tensor:
    # A space in a string matches any kind of space in a text.
    any_of = "|".join(re.escape(each).replace(r"\ ", r"[\s\pZ]") for each in strings)
    return tf.strings.regex_full_match(texts, f"(?s).*(?:{any_of}).*")


def _table(settings: TokenizerSettings) -> CharacterTable:
    return characters.cleaning_table(*_rules(settings))


def _rules(settings: TokenizerSettings) -> tuple[bool, bool, bool, str]:
    """What the tables of `characters` depend on."""
    return (
        settings.lower_case,
        settings.strips_accents,
        settings.split_chinese,
        settings.normalizer,
    )


def stand_ins(settings: TokenizerSettings) -> dict[str, str]:
    """The strings kept whole, each with the character that stands for it in cleaned text."""
    whole = dict.fromkeys((*_exact_tokens(settings).values(), *settings.added_tokens))
    most = len(characters.STAND_INS)
    if len(whole) > most:
        raise UserError(
            f"the tokenizer has {len(whole)} added and special tokens to keep whole; it takes at "
            f"most {most}, so shorten added_tokens"
        )
    return dict(zip(whole, characters.STAND_INS, strict=False))


def _exact_tokens(settings: TokenizerSettings) -> dict[int, str]:
    """Strings that are kept whole as they are, by their places among the stand-ins."""
    whole = (*_special_tokens(settings), *settings.exact_tokens)
    return dict(enumerate(dict.fromkeys(whole)))


def _special_tokens(settings: TokenizerSettings) -> tuple[str, ...]:
    return SPECIAL_TOKENS if settings.special_tokens == "whole" else ()


@functools.cache
def added_tokens(settings: TokenizerSettings) -> dict[int, str]:
    """Strings kept whole in cleaned text, in their cleaned form, by places among the stand-ins."""
    whole = [*stand_ins(settings)]
    first = len(_exact_tokens(settings))
    if first == len(whole):
        return {}
    with tf.init_scope(), tf.device("/CPU:0"):
        plain = dataclasses.replace(settings, special_tokens="text", exact_tokens=())
        text, kinds = _cleaned(tf.constant(whole[first:]), plain)
        seen = _with_equal_spaces(text, kinds).numpy()
        splits = text.splits.numpy()
    found = {}
    for place, token in enumerate(whole[first:], start=first):
        start, end = splits[place - first : place - first + 2]
        # Cleaning may put spaces around characters.
        found[place] = "".join(map(chr, seen[start:end])).strip()
        if not found[place] or token != token.strip():
            raise UserError(
                f"the added token {token!r} begins or ends with a space, or only has characters "
                "that are dropped; remove it from added_tokens"
            )
    return found


def clean(texts: tf.Tensor, settings: TokenizerSettings) -> tuple[tf.Tensor, ...]:
    """Cleans `texts`, string [batch], so that WordPiece splits them as the reference does.

    Returns four tensors: the cleaned texts, string [batch]; where the bytes of each text lie in the
    last two tensors, int32 [batch + 1]; and for each of these bytes, int32 [bytes], where its
    character, with accents dropped after it, starts and ends (exclusive) in the original text.
    """
    text, kinds = _cleaned(texts, settings)
    if added := added_tokens(settings):
        text, kinds = _with_added_tokens(text, kinds, added, settings)
    kinds &= characters.KIND
    text = _with_long_words_unknown(text, kinds, settings.longest_word)
    code_points = tf.RaggedTensor.from_row_splits(text.code_points, text.splits, validate=False)
    byte_starts = splits_of(_utf8_length(text.code_points))
    character = owners(byte_starts)
    return (
        tf.strings.unicode_encode(code_points, "UTF-8"),
        tf.gather(byte_starts, text.splits),
        tf.gather(text.starts, character),
        tf.gather(text.ends, character),
    )


def _cleaned(texts: tf.Tensor, settings: TokenizerSettings) -> tuple[_Characters, tf.Tensor]:
    """The characters of cleaned texts, and their properties in the table, int32 [characters]."""
    table = _table(settings)
    decoded, offsets = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="ignore")
    code_points, starts = decoded.values, tf.cast(offsets.values, tf.int32)
    splits, ends = tf.cast(decoded.row_splits, tf.int32), starts + _utf8_length(code_points)
    text = _Characters(code_points, splits, starts, ends)
    if exact := _exact_tokens(settings):
        text, _ = _with_wholes(text, text.code_points, exact)
    found = table.lookup(text.code_points)
    if settings.lower_case and rules_of(settings.normalizer).final_sigma:
        text, found = _with_final_sigmas(text, found, table)
    if settings.strips_accents:
        text, found = _with_marks_in_order(text, found, table, settings)
    return _replaced(text, found, table)


def _utf8_length(code_points: tf.Tensor) -> tf.Tensor:
    longer = [tf.cast(code_points >= first, tf.int32) for first in (0x80, 0x800, 0x10000)]
    return 1 + tf.add_n(longer)


def _with_added_tokens(
    text: _Characters, kinds: tf.Tensor, added: Mapping[int, str], settings: TokenizerSettings
) -> tuple[_Characters, tf.Tensor]:
    """Each added token of cleaned texts becomes its stand-in, between spaces."""
    table = _table(settings)
    text, kept = _with_wholes(text, _with_equal_spaces(text, kinds), added)
    kinds = tf.gather(kinds, kept)
    # All other characters are cleaned already.
    is_whole = text.code_points >= characters.WHOLE
    as_they_are = Lookup(tf.zeros_like(kinds), tf.ones_like(kinds), kinds)
    found = (
        tf.where(is_whole, *each)
        for each in zip(table.lookup(text.code_points), as_they_are, strict=True)
    )
    return _replaced(text, Lookup(*found), table)


def _with_equal_spaces(text: _Characters, kinds: tf.Tensor) -> tf.Tensor:
    return tf.where((kinds & characters.KIND) == characters.SPACE, ord(" "), text.code_points)


def _with_wholes(
    text: _Characters, seen: tf.Tensor, whole: Mapping[int, str]
) -> tuple[_Characters, tf.Tensor]:
    """Each of the strings `whole` in `seen` becomes one character, the number WHOLE + its place.

    The leftmost string counts, and the longest there. Also returns where the kept characters were.
    """
    size = tf.size(seen)
    starts_one = [seen == ord(first) for first in sorted({each[0] for each in whole.values()})]
    places = positions(functools.reduce(tf.logical_or, starts_one))

    def replace() -> tuple[tf.Tensor, ...]:
        after_text = tf.gather(text.splits, tf.searchsorted(text.splits, places, side="right"))
        left = after_text - places
        distances = tf.range(max(map(len, whole.values())))
        ahead = tf.gather(seen, tf.minimum(places[:, None] + distances, size - 1))
        numbers, lengths = tf.zeros_like(places), tf.zeros_like(places)
        for length in sorted({*map(len, whole.values())}):  # the longest last
            known = {text: n for n, text in reversed([*whole.items()]) if len(text) == length}
            number, is_known = _numbers_of(ahead[:, :length], known)
            here = is_known & (left >= length)
            numbers = tf.where(here, number, numbers)
            lengths = tf.where(here, length, lengths)
        found = positions(lengths > 0)
        starts, ends = tf.gather(places, found), tf.gather(places + lengths, found)
        taken = _leftmost(starts, ends)
        starts, ends = tf.gather(starts, taken), tf.gather(ends, taken)
        numbers = characters.WHOLE + tf.gather(numbers, tf.gather(found, taken))

        def with_values(values: tf.Tensor, of_wholes: tf.Tensor) -> tf.Tensor:
            return tf.tensor_scatter_nd_update(values, starts[:, None], of_wholes)

        changed = text._replace(
            code_points=with_values(text.code_points, numbers),
            ends=with_values(text.ends, tf.gather(text.ends, ends - 1)),
        )
        within = tf.cumsum(counts(starts + 1, size + 1) - counts(ends, size + 1))[:-1]
        return *changed.keep(within == 0), positions(within == 0)

    *fields, kept = tf.cond(tf.size(places) > 0, replace, lambda: (*text, tf.range(size)))
    return _Characters(*fields), kept


def _numbers_of(rows: tf.Tensor, known: Mapping[str, int]) -> tuple[tf.Tensor, tf.Tensor]:
    """The number of the `known` string that each row of code points spells, if it spells one."""
    strings = np.array([[*map(ord, string)] for string in known])
    # Strings are sorted by a hash: a row is compared only with the strings that share its hash.
    factors = np.random.default_rng(0).integers(2**40, size=strings.shape[1]) * 2 + 1
    hashes = strings @ factors
    order = np.argsort(hashes, kind="stable")
    of_row = tf.reduce_sum(tf.cast(rows, tf.int64) * factors, axis=1)
    first = tf.searchsorted(hashes[order], of_row)
    number, is_known = tf.zeros_like(first), tf.zeros_like(first, tf.bool)
    for further in range(np.unique(hashes, return_counts=True)[1].max()):
        place = tf.gather(order.astype(np.int32), tf.minimum(first + further, len(order) - 1))
        same = tf.reduce_all(tf.gather(strings.astype(np.int32), place) == rows, axis=1)
        number = tf.where(same, tf.gather([*known.values()], place), number)
        is_known |= same
    return number, is_known


def _leftmost(starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Which of some ascending ranges to take, so that none overlaps one before it: int32."""
    size = tf.size(starts)
    # The range that follows each one; `size` follows the last. Each turn doubles the stride.
    following = tf.concat([tf.searchsorted(starts, ends), [size]], axis=0)
    taken = tf.one_hot(0, size + 1, dtype=tf.int32)

    def double(following: tf.Tensor, taken: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        reached = tf.math.unsorted_segment_max(taken, following, size + 1)
        return tf.gather(following, following), tf.maximum(taken, reached)

    _, taken = tf.while_loop(lambda following, _: following[0] < size, double, (following, taken))
    return positions(taken[:-1] > 0)


def _shifted(values: tf.Tensor, distance: int, beyond: int | bool) -> tf.Tensor:
    """At each position the value `distance` further on, or the value `beyond` the ends."""
    width = tf.minimum(abs(distance), tf.size(values))
    fill = tf.fill([width], tf.constant(beyond, values.dtype))
    if distance >= 0:
        return tf.concat([values[width:], fill], axis=0)
    return tf.concat([fill, values[: tf.size(values) - width]], axis=0)


def _with_final_sigmas(
    text: _Characters, found: Lookup, table: CharacterTable
) -> tuple[_Characters, Lookup]:
    """Lower-cases to ς each capital sigma with a cased letter before it and none after it."""
    capital = text.code_points == _CAPITAL_SIGMA

    def some_are_final() -> tuple[tf.Tensor, ...]:
        # The characters that count; sigmas are among them.
        counted = positions(found.is_seen() & ~found.has(characters.CASE_IGNORABLE))
        rows = tf.gather(owners(text.splits), counted)
        cased = tf.gather(found.has(characters.CASED), counted)
        before, after = (
            _shifted(cased, distance, False) & (_shifted(rows, distance, -1) == rows)
            for distance in (-1, 1)
        )
        final = tf.gather(capital, counted) & before & ~after
        sigmas = tf.gather(counted, positions(final))[:, None]
        lowered = tf.fill([tf.shape(sigmas)[0]], _FINAL_SIGMA)
        code_points = tf.tensor_scatter_nd_update(text.code_points, sigmas, lowered)
        return code_points, *table.lookup(code_points)

    code_points, *fields = tf.cond(
        tf.reduce_any(capital), some_are_final, lambda: (text.code_points, *found)
    )
    return text._replace(code_points=code_points), Lookup(*fields)


def _with_marks_in_order(
    text: _Characters, found: Lookup, table: CharacterTable, settings: TokenizerSettings
) -> tuple[_Characters, Lookup]:
    """Sorts runs of combining marks by their class, the second half of Unicode's NFD.

    Marks that cleaning does not drop are very rare. The marks of a run share its range. Accents
    that are dropped belong to the character before them, and to all letters of a syllable.
    """

    def sort() -> tuple[tf.Tensor, ...]:
        # Characters that cleaning deletes would split a run.
        present = text.keep(found.is_seen())
        decomposition = characters.decomposition_table(settings.lower_case, settings.normalizer)
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
        in_order = _Characters(code_points, parts.splits, starts, ends)
        known = table.lookup(code_points)
        ends = _ends_with_accents(in_order, known)
        # Letters of one syllable are side by side and have one start.
        kind = tf.gather(is_mark, order)
        is_new = (starts != _shifted(starts, -1, -1)) | (kind != _shifted(kind, -1, -1))
        syllable = tf.cumsum(tf.cast(is_new | (starts_text > 0), tf.int32)) - 1
        ends = tf.gather(tf.math.segment_max(ends, syllable), syllable)
        return *in_order._replace(ends=ends), *known

    def keep() -> tuple[tf.Tensor, ...]:
        return *text._replace(ends=_ends_with_accents(text, found)), *found

    fields = tf.cond(tf.reduce_any(found.has(characters.LASTING_MARK)), sort, keep)
    return _Characters(*fields[:4]), Lookup(*fields[4:])


def _ends_with_accents(text: _Characters, found: Lookup) -> tf.Tensor:
    """Where each character ends if the accents that are dropped after it are part of it: int32."""
    seen = positions(found.is_seen())
    rows = tf.gather(owners(text.splits), seen)
    follows = tf.gather(found.has(characters.ACCENT), seen) & (_shifted(rows, -1, -1) == rows)
    heads = positions(~follows)
    # A head's accents are all before the next head.
    last = tf.concat([heads, [tf.size(seen)]], axis=0)[1:] - 1
    ends = tf.gather(text.ends, tf.gather(seen, last))
    return tf.tensor_scatter_nd_update(text.ends, tf.gather(seen, heads)[:, None], ends)


def _replaced(
    text: _Characters, found: Lookup, table: CharacterTable
) -> tuple[_Characters, tf.Tensor]:
    """Replaces characters by their entries in the table; returns their properties in it too."""
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


def _with_long_words_unknown(text: _Characters, kinds: tf.Tensor, longest_word: int) -> _Characters:
    """Makes each word over the limit one that no piece matches."""
    longest = tf.reduce_max(text.splits[1:] - text.splits[:-1])

    def marked() -> tf.Tensor:
        in_word = kinds == characters.IN_WORD
        before = _shifted(in_word, -1, False) & ~starts_row(text.splits)
        word = tf.cumsum(tf.cast(in_word & ~before, tf.int32))
        # Number 0 is not a word: it has the characters before the first word.
        sizes = tf.math.segment_sum(tf.cast(in_word, tf.int32), word)
        too_long = in_word & tf.gather(sizes > longest_word, word)
        return tf.where(too_long, characters.UNKNOWN, text.code_points)

    code_points = tf.cond(longest > longest_word, marked, lambda: text.code_points)
    return text._replace(code_points=code_points)
