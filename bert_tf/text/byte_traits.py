"""How cleaning treats each character of a text, found with ops that LiteRT has.

LiteRT cannot decode strings. Here tf-text's normalizer replaces every character by some spaces,
whose number is the character's kind, and reports the byte that each space comes from.
"""

import functools
import itertools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert_tf.text import characters
from bert_tf.text.normalizer_model import normalize, normalizer_model
from bert_tf.text.rows import counts, owners, positions, splits_of

# What becomes of a character. One that stays is in a word, or else ends the word before it.
_ENDS_WORD, _IN_WORD, _DELETED, _ACCENT = range(4)

# How the rule of final sigmas sees a character; it looks through some characters.
_UNCASED, _CASED, _PASSED, _SIGMA = range(4)

# The kinds of characters in the order of their numbers, frequent ones first; 0 is no character. The
# first one is also the end of a text.
_FREQUENT = (
    (_ENDS_WORD, _UNCASED),
    (_IN_WORD, _CASED),
    (_IN_WORD, _UNCASED),
    (_ENDS_WORD, _PASSED),
    (_ACCENT, _PASSED),
    (_DELETED, _PASSED),
)
_KINDS = tuple(dict.fromkeys((*_FREQUENT, *itertools.product(range(4), range(4)))))

CAPITAL_SIGMA = "\u03a3"


class ByteTraits:
    """The characters of texts by their bytes.

    A slot is the place of a byte among those of all texts, where each text has one more slot for
    its end.
    """

    def __init__(self, texts: tf.Tensor, lower_case: bool, normalizer: str = "google"):
        found = normalize(texts, _traits_model(lower_case, normalizer))
        lengths = tf.gather(found.origins, found.splits[1:] - 1)
        self.first_slots = splits_of(lengths + 1)  # of each text, int32 [batch + 1]
        slots = found.origins + tf.gather(self.first_slots, owners(found.splits))
        self._kinds = counts(slots, self.first_slots[-1])

    def ends(self, slots: tf.Tensor) -> tf.Tensor:
        """The slot where the characters at `slots` end, with the accents that follow; int32."""
        is_kept = self._have(lambda fate, case: fate in (_ENDS_WORD, _IN_WORD))
        is_seen = self._have(lambda fate, case: fate != _DELETED)
        after = tf.gather(_next(is_kept), slots)
        last = tf.gather(positions(is_seen), tf.gather(_rank(is_seen), after) - 2)
        return tf.gather(_next(self._kinds > 0), last)

    def ends_in_sigma(self) -> tf.Tensor:
        """Where a capital sigma becomes ς, with the end of a word after it: bool [slots]."""
        # A sigma is final if it follows a cased letter and no cased letter follows it.
        counted = positions(self._have(lambda fate, case: case != _PASSED))
        cased = tf.gather(self._have(lambda fate, case: case in (_CASED, _SIGMA)), counted)
        cased = tf.cast(cased, tf.int32)
        before = tf.concat([[0], cased[:-1]], axis=0)
        after = tf.concat([cased[1:], [0]], axis=0)
        is_sigma = tf.gather(self._have(lambda fate, case: case == _SIGMA), counted)
        final = tf.gather(counted, positions(is_sigma & (before > after)))
        is_kept = self._have(lambda fate, case: fate in (_ENDS_WORD, _IN_WORD))
        ends_word = self._have(lambda fate, case: fate == _ENDS_WORD)
        word_ends = tf.gather(ends_word, tf.gather(_next(is_kept), final))
        final = tf.gather(final, positions(word_ends))
        return counts(final, self.first_slots[-1]) > 0

    def _have(self, trait: Callable[[int, int], bool]) -> tf.Tensor:
        """The slots where a character with this fate and case starts: bool."""
        return tf.gather([False, *(trait(*kind) for kind in _KINDS)], self._kinds)


def _rank(mask: tf.Tensor) -> tf.Tensor:
    """How many are True up to each position, this one included: int32."""
    return tf.cumsum(tf.cast(mask, tf.int32))


def _next(mask: tf.Tensor) -> tf.Tensor:
    """The next True after each position: int32 [n]; the last position, which has none, is True."""
    found = positions(mask)
    return tf.gather(found, tf.minimum(_rank(mask), tf.size(found) - 1))


@functools.cache
def _traits_model(lower_case: bool, normalizer: str) -> np.ndarray:
    """The normalizer that replaces each character by as many spaces as its number: uint8."""
    table = characters.cleaning_table(lower_case, normalizer=normalizer)
    found = table.unpacked()
    fate = np.where(table.first_kinds() == characters.IN_WORD, _IN_WORD, _ENDS_WORD)
    fate[found.length == 0] = _DELETED
    fate[found.has(characters.ACCENT)] = _ACCENT
    case = np.where(found.has(characters.CASED), _CASED, _UNCASED)
    case[found.has(characters.CASE_IGNORABLE) | (fate == _DELETED)] = _PASSED
    if lower_case:
        case[ord(CAPITAL_SIGMA)] = _SIGMA
    spaces = {
        " " * number: np.flatnonzero((fate == kind[0]) & (case == kind[1]))
        for number, kind in enumerate(_KINDS, start=1)
    }
    return normalizer_model(spaces, broken=" " * (1 + _KINDS.index((_DELETED, _PASSED))))
