"""Small vocabularies for tests, and texts that ask everything of a tokenizer."""

import functools

from hypothesis import settings, strategies

from bert_tf.text import Tokenizer

bounded = settings(max_examples=50, deadline=None, derandomize=True)

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

_LETTERS = (
    "abcdefghijklmnopqrstuvwxyz"
    "ß\u03b1\u03b2\u03c3\u03c2\u0438\u05d0\u0627\u0e01\u304b\u4e2d\u1112\u1161\u11ab"
)
_LONGER = (
    "the cat cafe un able ing a-b don't \u03c3\u03b1 \u1161\u11ab na na\u00efve caf\u00e9".split()
)
# Marks that are not dropped: a decomposed vowel, and two whose order in a text is not NFD's.
_MARKS = "\u09c7 ##\u09be ##\u302e ##\u1b44".split()
_SIGNS = "! , . ' - # [ ] \u2014 \u3002 \u20ac 7 42 \U0001f600".split()

# Every letter alone and within a word, some longer pieces, and signs.
LOWER = [
    *SPECIAL,
    *_LETTERS,
    *(f"##{letter}" for letter in _LETTERS),
    *_LONGER,
    *(f"##{piece}" for piece in _LONGER),
    *_MARKS,
    *_SIGNS,
]
CASED = [*LOWER, *"ABTΣİ\u00e9\u0301", *(f"##{letter}" for letter in "ABTΣİ\u00e9\u0301")]


@functools.cache
def tokenizer_of(lower_case: bool = True, keep_special_tokens: bool = False) -> Tokenizer:
    """The tokenizer of `LOWER` or `CASED`."""
    whole = "whole" if keep_special_tokens else "text"
    return Tokenizer(LOWER if lower_case else CASED, lower_case, special_tokens=whole)


# Characters that some step of cleaning, or the decoding before it, treats in its own way.
_REMARKABLE = (
    # Letters with another case, a special one, or a decomposition.
    "aAbtTun\u00e9\u00c9\u00efßẞİIıſﬁΣσςάΆ\u1e9e\u0130\u01c5\u212a\u2126\uff21\u00c5"
    # Hangul, kana and ideographs, compatible ones too.
    "\ud55c\uac00\u1112\u1161\u11ab\u304c\u304b\u4e2d\uf900\U0002f800\U00020000"
    # Marks of several classes; some are not dropped.
    "\u0300\u0301\u0323\u0345\u05b0\u064b\u0651\u093c\u094d\u1b44\u302e\u3099\U0001d165\U0001d16d\u20dd"
    "\u09cb\U0001d15e\u0e33\u0344"
    # Spaces, controls and formats.
    " \t\n\r\x00\x0b\x1c\x1f\x7f\x85"
    "\xa0\u00ad\u1680\u2003\u2028\u2029\u200b\u200d\u202e\u3000\ufeff\ufffd"
    # Punctuation and other signs, and characters newer than some.
    "!,.'-#[]_$\u2014\u3002\u20ac\u00b7\u02bc\U0001f600\U0001f3fd\u1b4e\U00011b00"
    "\ue000\ufffe\U0010ffff\U000e0041\U000e0100"
)  # fmt: skip

# Few characters at a time, whose order and neighbours matter: sigmas, marks, spaces and words.
_GROUPS = (
    "\u03a3\u03c3\u03c2\u0391a1'.\u00ad\u0301 \u4e2d",
    "b\u302e\u1b44\u0301\u0323\u05b0\u200d\u0f71\u09be \u09cb",
    "\u00e9ab\u0301 \u200b",
    "\ud55c\u1112\u1161\u11ab\u304c\u4e2d!\u3000",
    "abct\u00e9!, ",
)

texts = strategies.one_of(
    *(strategies.text(strategies.sampled_from(group), max_size=12) for group in _GROUPS),
    strategies.text(
        strategies.sampled_from(_REMARKABLE) | strategies.characters(exclude_categories=["Cs"]),
        max_size=30,
    ),
)

_BROKEN = [
    b"\x80",
    b"\xc0",
    b"\xc3",
    b"\xe4\xb8",
    b"\xed\xa0\x80",
    b"\xf0\x9f",
    b"\xf4\x90",
    b"\xff",
]

broken_texts = strategies.lists(
    texts.map(str.encode) | strategies.sampled_from(_BROKEN) | strategies.binary(max_size=4),
    max_size=5,
).map(b"".join)
