"""What BERT's cleaning does with each Unicode code point, as small tables for the graph.

The rules are those of `unicode_rules`. WordPiece itself is a tf-text op, which splits at spaces,
punctuation and CJK characters by its own Unicode version. Where the op disagrees with the rules,
the tables change the character so that the words come out as in the reference.
"""

import functools
import itertools
import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.text.unicode_rules import UnicodeRules, rules_of

UNKNOWN = 0xFFFD  # cleaning deletes it, so a word that holds it is [UNK]
NEVER = "\x06"  # cleaning deletes it too
# In cleaned text one character, a stand-in, replaces each string kept whole. First come other
# control characters that cleaning deletes and that end no word; U+11 is missing, since the op uses
# it. Then come unassigned characters of plane 4, which become UNKNOWN if a text has them. During
# cleaning such a string is the number WHOLE + its place, which is not a Unicode code point.
_CONTROLS = (*range(0x01, 0x09), *range(0x0E, 0x1C), *range(0x7F, 0x85), *range(0x86, 0xA0))
_UNASSIGNED = range(0x40000, 0x403B4)
STAND_INS = "".join(map(chr, (*_CONTROLS, *_UNASSIGNED))).replace(NEVER, "").replace("\x11", "")
WHOLE = 0x110000
# How a character takes part in words: inside a word, between words, or as a word of its own.
IN_WORD, SPACE, ALONE = 0, 1, 2
# Bits of `Lookup.properties` of the cleaning table.
KIND = 0b11
ACCENT = 1 << 2
CASED = 1 << 3
CASE_IGNORABLE = 1 << 4
LASTING_MARK = 1 << 5
# `Lookup.properties` of the decomposition table is the canonical combining class.
MAX_COMBINING = 255
# Planes 0 to 3 and 14; the others have no character that cleaning changes.
_CODE_POINTS = (*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xF0000))
# The private-use characters of planes 15 and 16. If ideographs are letters like any others, each
# becomes a private-use character, because the op makes ideographs words of their own.
_PRIVATE = (*range(0xF0000, 0xFFFFE), *range(0x100000, 0x10FFFE))
_PAGE_BITS = 8
_SIZE = WHOLE + (4 << _PAGE_BITS)
# How the numbers of a code point share an int32, and those of a character that replaces another.
_FIRST_BITS, _LENGTH_BITS = 18, 4
_PROPERTIES_SHIFT = _FIRST_BITS + _LENGTH_BITS
_CODE_POINT_BITS = 21


class Lookup(NamedTuple):
    """The entries of a table for some code points; each int32, of one shape."""

    first: tf.Tensor  # where the replacement starts in `replacements`, 0 if the character stays
    length: tf.Tensor  # the characters of the replacement, 1 if the character stays
    properties: tf.Tensor  # the bits or number that the table gives the character itself

    def has(self, bit: int) -> tf.Tensor:
        """Which of the code points have a property of the cleaning table: bool."""
        return (self.properties & bit) != 0

    def is_seen(self) -> tf.Tensor:
        """Which of the code points the steps after deletion see, accents to drop included: bool."""
        return (self.length > 0) | self.has(ACCENT)


@dataclass(frozen=True)
class CharacterTable:
    """The replacement and the properties of every code point, in pages of 256.

    Equal pages are stored once, so that the table is small and a lookup is two gathers.
    """

    page_starts: np.ndarray  # int32 [_SIZE / 256], where in `packed` each page starts
    packed: np.ndarray  # int32 [distinct pages * 256]
    replacements: np.ndarray  # int32, the characters of all replacements with their properties

    def lookup(self, code_points: tf.Tensor) -> Lookup:
        """Looks up `code_points`, int32 of any shape."""
        page = tf.gather(self.page_starts, tf.bitwise.right_shift(code_points, _PAGE_BITS))
        packed = tf.gather(self.packed, page + (code_points & ((1 << _PAGE_BITS) - 1)))
        return Lookup(
            first=packed & ((1 << _FIRST_BITS) - 1),
            length=tf.bitwise.right_shift(packed, _FIRST_BITS) & ((1 << _LENGTH_BITS) - 1),
            properties=tf.bitwise.right_shift(packed, _PROPERTIES_SHIFT),
        )

    def replacement(self, places: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Code points and properties of the characters at `places` of the replacements, int32."""
        character = tf.gather(self.replacements, places)
        code_points = character & ((1 << _CODE_POINT_BITS) - 1)
        return code_points, tf.bitwise.right_shift(character, _CODE_POINT_BITS)

    def unpacked(self) -> Lookup:
        """`lookup` of all code points at once, as arrays; their indices are the code points."""
        with tf.init_scope(), tf.device("/CPU:0"):
            return Lookup(*(each.numpy() for each in self.lookup(tf.range(WHOLE))))

    def first_kinds(self) -> np.ndarray:
        """The KIND of each code point, or of the first character that replaces it."""
        found = self.unpacked()
        of_replacements = self.replacements >> _CODE_POINT_BITS
        properties = np.where(found.first, of_replacements[found.first], found.properties)
        return properties & KIND

    def changes(self) -> dict[str, list[int]]:
        """The strings that replace code points, each with the code points that it replaces."""
        found = self.unpacked()
        characters = [chr(each) for each in self.replacements & ((1 << _CODE_POINT_BITS) - 1)]
        changes: dict[str, list[int]] = {}
        for code_point in np.flatnonzero((found.first > 0) | (found.length != 1)).tolist():
            first, length = found.first[code_point], found.length[code_point]
            string = "".join(characters[first : first + length])
            changes.setdefault(string, []).append(code_point)
        return changes


def _table(
    describe: Callable[[int], tuple[tuple[int, ...], int]],
    properties: Callable[[int], int],
    stay: np.ndarray,
    own_of_stay: np.ndarray | int = 0,
    more: Sequence[int] = (),
) -> CharacterTable:
    """Packs a table of `_CODE_POINTS` and of `more`.

    `describe` gives the replacement of a code point (itself if it stays) and its properties. Code
    points for which `stay`, bool [_SIZE], is true stay and have the properties `own_of_stay`.
    """
    # Place 0 belongs to the characters that stay.
    replacements = [0]
    places: dict[tuple[int, ...], int] = {(): 0}
    packed = np.full(_SIZE, 1 << _FIRST_BITS, np.int32)
    packed |= np.where(stay, own_of_stay, 0) << _PROPERTIES_SHIFT
    code_points = np.array([*_CODE_POINTS, *more, *range(WHOLE, WHOLE + len(STAND_INS))])
    for code_point in code_points[~stay[code_points]].tolist():
        becomes, own = describe(code_point)
        if becomes == (code_point,):
            first = 0
        elif becomes in places:
            first = places[becomes]
        else:
            first = places[becomes] = len(replacements)
            replacements += (each | properties(each) << _CODE_POINT_BITS for each in becomes)
        packed[code_point] = first | len(becomes) << _FIRST_BITS | own << _PROPERTIES_SHIFT
    numbers: dict[bytes, int] = {}
    page_of = [
        numbers.setdefault(page.tobytes(), len(numbers))
        for page in packed.reshape(-1, 1 << _PAGE_BITS)
    ]
    page_starts = np.array(page_of, np.int32) << _PAGE_BITS
    pages = np.frombuffer(b"".join(numbers), np.int32)
    return CharacterTable(page_starts, pages, np.array(replacements, np.int32))


@functools.cache
def cleaning_table(
    lower_case: bool,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
    normalizer: str = "google",
) -> CharacterTable:
    """The whole of cleaning, except for the few steps that depend on neighbouring characters.

    ACCENT marks a character that is dropped as an accent. LASTING_MARK marks one whose replacement
    has a combining mark that is not dropped. Both are set only when stripping accents. CASED and
    CASE_IGNORABLE are set only when lower-casing.
    """
    if strip_accents is None:
        return cleaning_table(lower_case, lower_case, split_chinese, normalizer)
    kinds = _kinds_of_the_op()
    rules = rules_of(normalizer)
    letters = {} if split_chinese else ideographs_as_letters()
    drops_private = "Co" in rules.deleted
    taken = () if split_chinese and not drops_private else _PRIVATE

    def describe(code_point: int) -> tuple[tuple[int, ...], int]:
        if code_point >= WHOLE:
            return (ord(" "), ord(STAND_INS[code_point - WHOLE]), ord(" ")), 0
        if code_point in _UNASSIGNED:
            return (UNKNOWN,), IN_WORD
        if taken and code_point >= taken[0]:
            return () if drops_private else (UNKNOWN,), IN_WORD
        character = chr(code_point)
        own = int(kinds[code_point])
        if character in "\t\n\r":
            return (code_point,), own
        category = rules.category(character)
        is_private = category == "Co" and not drops_private
        is_unassigned = category == "Cn" and character not in rules.lower_cases
        if own == IN_WORD and (is_private or is_unassigned):
            # There are many such characters, and nothing below concerns them.
            return (code_point,), own
        # Unicode's Cased and Case_Ignorable, which Python does not show.
        if lower_case and f"{character}\u03a3".lower().endswith("\u03c2"):
            own |= CASED
        elif lower_case and f"a{character}\u03a3".lower().endswith("\u03c2"):
            own |= CASE_IGNORABLE
        if rules.is_deleted(character):
            return (), own
        lowered = rules.lowered(character) if lower_case else character
        after: Sequence[str] = lowered
        if strip_accents:
            decomposed = rules.decomposed(lowered)
            after = "".join(each for each in decomposed if rules.category(each) != "Mn")
            own |= LASTING_MARK if any(map(unicodedata.combining, after)) else 0
            own |= 0 if after else ACCENT
        is_cjk = split_chinese and any(a <= code_point <= b for a, b in rules.ideographs)
        return sum((_for_the_op(each, is_cjk, kinds, letters, rules) for each in after), ()), own

    expected = np.full(_SIZE, IN_WORD)
    for first, last in rules.ideographs if split_chinese else ():
        expected[first : last + 1] = ALONE
    stay = _ordinary(normalizer) & (kinds == expected)
    more = (*_UNASSIGNED, *taken)
    return _table(describe, lambda code_point: int(kinds[code_point]), stay, kinds, more)


@functools.cache
def _ordinary(normalizer: str) -> np.ndarray:
    """Most code points, bool [_SIZE]: no marks, and neither case nor decomposition changes them."""
    rules = rules_of(normalizer)
    kept = {"Lo", "Cn", "Co"} - {*rules.deleted}
    ordinary = np.zeros(_SIZE, bool)
    # The changes are checked for a whole block at once, so that a block takes few calls.
    for start in range(0, len(_CODE_POINTS), 64):
        block = [chr(each) for each in _CODE_POINTS[start : start + 64]]
        text = "".join(block)
        sigmas = (f"{before}{each}\u03a3" for each in block for before in ("", "a"))
        changes = (
            text.lower() != text
            or unicodedata.normalize("NFD", text) != text
            or "\u03c2" in "\n".join(sigmas).lower()  # one of them is cased or case-ignorable
            or any(each in rules.lower_cases for each in block)
        )
        if not changes:
            ordinary[[*map(ord, block)]] = [
                unicodedata.category(each) in kept and each not in rules.listed for each in block
            ]
    return ordinary


@functools.cache
def ideographs_as_letters() -> dict[int, int]:
    """CJK ideographs -> the private-use characters that replace them as letters."""
    ideographs = (range(start, end + 1) for start, end in rules_of("google").ideographs)
    return dict(zip(itertools.chain.from_iterable(ideographs), _PRIVATE, strict=False))


@functools.cache
def decomposition_table(lower_case: bool, normalizer: str = "google") -> CharacterTable:
    """Canonical decomposition; properties are canonical combining classes."""
    rules = rules_of(normalizer)

    def describe(code_point: int) -> tuple[tuple[int, ...], int]:
        if code_point >= WHOLE:
            return (code_point,), 0
        character = chr(code_point)
        after = rules.decomposed(rules.lowered(character) if lower_case else character)
        return tuple(map(ord, after)), unicodedata.combining(character)

    stay = _ordinary(normalizer)
    return _table(describe, lambda code_point: unicodedata.combining(chr(code_point)), stay)


def _for_the_op(
    character: str, is_cjk: bool, kinds: np.ndarray, letters: Mapping[int, int], rules: UnicodeRules
) -> tuple[int, ...]:
    """`character` rewritten so that the op splits words there exactly if the reference does."""
    code_point = ord(character)
    if character.isspace():
        kind = SPACE
    # Unicode punctuation, and every ASCII sign that is not a letter or digit.
    elif is_cjk or character in string.punctuation or rules.category(character).startswith("P"):
        kind = ALONE
    else:
        kind = IN_WORD
    if kinds[code_point] == kind:
        return (code_point,)
    if kind == SPACE:
        return (ord(" "),)
    if kind == ALONE and kinds[code_point] == IN_WORD:
        return (ord(" "), code_point, ord(" "))
    # The op would split a word here, unlike the reference: at an ideograph that is a letter, or a
    # character so new that the rules do not know it. A word with the latter is [UNK].
    return (letters.get(code_point, UNKNOWN),)


@functools.cache
def _kinds_of_the_op() -> np.ndarray:
    """How the op splits at each code point: int32 [_SIZE] of IN_WORD, SPACE, ALONE."""
    import tensorflow_text as tf_text

    with tf.init_scope(), tf.device("/CPU:0"):
        op = tf_text.FastWordpieceTokenizer(["[UNK]", "x"])
        words = op.tokenize(tf.constant([f"x{chr(each)}x" for each in _CODE_POINTS]))
        counts = words.row_lengths().numpy()
    kinds = np.full(_SIZE, IN_WORD, np.int32)
    kinds[[*_CODE_POINTS]] = counts - 1
    return kinds


@functools.cache
def plain_characters(
    lower_case: bool, strip_accents: bool, split_chinese: bool, normalizer: str, without: str
) -> str:
    """The characters that cleaning leaves unchanged and ASCII capitals, for regular expressions."""
    found = cleaning_table(lower_case, strip_accents, split_chinese, normalizer).unpacked()
    plain = (found.first == 0) & (found.length == 1) & ~found.has(LASTING_MARK)
    plain[ord("A") : ord("Z") + 1] = True
    plain[0xD800:0xE000] = False
    plain[[ord(each) for each in without]] = False
    edges = np.flatnonzero(np.diff(plain, prepend=False, append=False))
    return "".join(rf"\x{{{start:x}}}-\x{{{end - 1:x}}}" for start, end in edges.reshape(-1, 2))
