"""A tokenizer does what its settings say, with the ids and offsets of Hugging Face's tokenizers."""

import functools
import re
import unicodedata
from typing import Any

import pytest
import tensorflow as tf
from hypothesis import given, strategies

from bert_tf.errors import UserError
from bert_tf.text import Tokenizer
from bert_tf.text.characters import STAND_INS
from bert_tf.text.lite_tokenizer import LiteTokenizer
from tests.text import oracle
from tests.text.vocabularies import CASED, SPECIAL, bounded, texts

ADDED = ("<e1>", "</e1>", "cool-token", "cool", "bab", "ab", "New York")
VOCABULARIES = {
    "accents": [
        *"\u017ce ze wysok\u0105 izb\u0119".split(),
        "cafe",
        "Ze",
        "caf",
        "##e",
        "##\u0301",
    ],
    "ideographs": "\u6c49\u5b57 and \u6c49 \u5b57 ##\u5b57 \u6c49a ##\u4e2d".split(),
    "added": [*ADDED, "a", "b", "marie", "c"],
    "rules": "\u03bf\u03b4\u03bf\u03c2 \u03bf\u03b4\u03bf\u03c3 ab a b ##b x ##\u0898".split(),
    "letters": "a ##a . e ##e \u1112 ##\u1161 ##\u11ab".split(),
}
# Ids and byte offsets of the library tokenizers 0.23.3: BertNormalizer(clean_text=True),
# BertPreTokenizer, WordPiece and AddedToken with the same settings. The vocabulary is that of the
# name after the special tokens.
KEPT, STRIPPED = {"strip_accents": False}, {"lower_case": False, "strip_accents": True}
THEIRS = {"normalizer": "huggingface"}
UNSPLIT, WITH_ADDED = {"split_chinese": False}, {"added_tokens": ADDED}
# Added tokens with normalized=False, next to two with normalized=True.
EXACT = {"exact_tokens": ("<e1>", "New York", "cool-token"), "added_tokens": ("bab", "cool")}
SPLIT = [(1, 9, 10), (1, 10, 12), (1, 12, 13)]
GOLDEN: list[tuple[str, dict[str, Any], str, list[tuple[int, int, int]]]] = [
    ("accents", KEPT, "\u017be wysok\u0105 izb\u0119", [(5, 0, 3), (7, 4, 11), (8, 12, 17)]),
    ("accents", {}, "\u017be wysok\u0105 izb\u0119", [(6, 0, 3), (1, 4, 11), (1, 12, 17)]),
    ("accents", KEPT, "CAFE\u0301 \u0130", [(9, 0, 4), (13, 4, 6), (1, 7, 9)]),
    ("accents", STRIPPED, "\u017be CAF\xc9 caf\u00e9", [(10, 0, 3), (1, 4, 9), (9, 10, 15)]),
    ("ideographs", UNSPLIT, "\u6c49\u5b57 and", [(5, 0, 6), (6, 7, 10)]),
    (
        "ideographs",
        UNSPLIT,
        "\u6c49a \u6c49\u5b57\u4e2dand, \u5b57",
        [(10, 0, 4), (1, 5, 17), (1, 17, 18), (8, 19, 22)],
    ),
    ("ideographs", {}, "\u6c49\u5b57 and", [(7, 0, 3), (8, 3, 6), (6, 7, 10)]),
    ("ideographs", UNSPLIT | KEPT, "AND\u6c49 \u6c49A", [(1, 0, 6), (10, 7, 11)]),
    ("added", WITH_ADDED, "<e1>Marie</e1>", [(5, 0, 4), (14, 4, 9), (6, 9, 14)]),
    ("added", WITH_ADDED, "SenTenCE wIth cOOl-token", [(1, 0, 8), (1, 9, 13), (7, 14, 24)]),
    ("added", WITH_ADDED, "babab abab", [(9, 0, 3), (10, 3, 5), (10, 6, 8), (10, 8, 10)]),
    (
        "added",
        WITH_ADDED,
        "coolcool-tok c\xf3ol\xad-token",
        [(8, 0, 4), (8, 4, 8), (1, 8, 9), (1, 9, 12), (7, 13, 26)],
    ),
    (
        "added",
        WITH_ADDED,
        "in new\tYORK new  york",
        [(1, 0, 2), (11, 3, 11), (1, 12, 15), (1, 17, 21)],
    ),
    (
        "added",
        WITH_ADDED | {"lower_case": False},
        "<e1>Marie</e1> <E1> New York",
        [(5, 0, 4), (1, 4, 9), (6, 9, 14), (1, 15, 16), (1, 16, 18), (1, 18, 19), (11, 20, 28)],
    ),
    (
        "added",
        WITH_ADDED | {"special_tokens": "whole"},
        "a[MASK]<e1>[mask]",
        [(12, 0, 1), (4, 1, 7), (5, 7, 11), (1, 11, 12), (1, 12, 16), (1, 16, 17)],
    ),
    ("added", EXACT, "<e1>Marie<E1>a", [(5, 0, 4), (14, 4, 9), *SPLIT, (12, 13, 14)]),
    ("added", EXACT, "in New York new york", [(1, 0, 2), (11, 3, 11), (1, 12, 15), (1, 16, 20)]),
    ("added", EXACT, "BAB cóol cool-token", [(9, 0, 3), (8, 4, 9), (7, 10, 20)]),
    ("rules", THEIRS, "\u039f\u0394\u039f\u03a3 \u03a3", [(6, 0, 8), (1, 9, 11)]),
    ("rules", {}, "\u039f\u0394\u039f\u03a3 \u03a3", [(5, 0, 8), (1, 9, 11)]),
    ("rules", THEIRS, "a\ue000b \U000f0001", [(7, 0, 5)]),
    (
        "rules",
        THEIRS,
        "a\U0002b820\U0002b820, \U0002b930x",
        [(1, 0, 9), (1, 9, 10), (1, 11, 15), (11, 15, 16)],
    ),
    (
        "rules",
        THEIRS,
        "a\u0898 x\u061d \U00010d50\u1c89",
        [(8, 0, 1), (12, 1, 4), (1, 5, 8), (1, 9, 16)],
    ),
    ("letters", {"longest_word": 100}, "a" * 150 + " a", [(1, 0, 150), (5, 151, 152)]),
    ("letters", {"longest_word": 100}, "\u00e9" * 101 + ".", [(1, 0, 202), (7, 202, 203)]),
    (
        "letters",
        {"longest_word": 3},
        "aaaa aaa.aaaaaa \ud55c \ud55ca",
        [
            (1, 0, 4),
            (5, 5, 6),
            (6, 6, 7),
            (6, 7, 8),
            (7, 8, 9),
            (1, 9, 15),
            (10, 16, 19),
            (11, 16, 19),
            (12, 16, 19),
            (1, 20, 24),
        ],
    ),
]


def tokenizer_of(name: str, **settings: Any) -> Tokenizer:
    return Tokenizer([*SPECIAL, *VOCABULARIES[name]], **settings)


@pytest.mark.end_to_end
@pytest.mark.parametrize(("name", "settings", "text", "expected"), GOLDEN)
def test_ids_and_offsets_are_those_of_hugging_faces_tokenizers(name, settings, text, expected):
    tokenizer = tokenizer_of(name, **settings)
    found = tokenizer.tokenize_with_offsets(["plain", text])
    assert [(*each,) for each in zip(*(part.to_list()[1] for part in found), strict=True)] == (
        expected
    )
    assert tokenizer.tokenize(text).numpy().tolist() == [number for number, *_ in expected]


# Every setting of cleaning that is not the reference's.
CLEANING = [
    {"lower_case": True, "strip_accents": False},
    {"lower_case": False, "strip_accents": True},
    {"lower_case": True, "split_chinese": False},
    {"lower_case": False, "split_chinese": False},
    {"lower_case": True, "strip_accents": False, "split_chinese": False},
    {"lower_case": False, "strip_accents": True, "split_chinese": False},
]


def assert_oracles_pieces(batch: list[str], tokenizer: Tokenizer, settings: dict[str, Any]) -> None:
    known = set(tokenizer.vocabulary)
    ids = tokenizer.tokenize(tf.constant(batch, tf.string)).to_list()
    found = [[tokenizer.vocabulary[number] for number in row] for row in ids]
    assert found == [oracle.pieces(text, known, **settings) for text in batch]


@bounded
@given(batch=strategies.lists(texts, max_size=40))
@pytest.mark.parametrize("settings", [*CLEANING, {"lower_case": True, "longest_word": 3}], ids=str)
def test_any_text_gives_what_the_algorithm_in_plain_python_gives(batch, settings):
    assert_oracles_pieces(batch, Tokenizer(CASED, **settings), settings)


@functools.cache
def every_letter() -> list[str]:
    """Pieces for nearly all characters, alone and within a word, so that each result is visible."""
    code_points = [*range(0xD800), *range(0xF900, 0x32000), *range(0xE0000, 0xE0200)]
    known = [each for each in map(chr, code_points) if unicodedata.category(each)[0] not in "CZ"]
    return [*SPECIAL, "un", *known, *(f"##{each}" for each in known)]


@pytest.mark.slow
@pytest.mark.parametrize("settings", CLEANING, ids=str)
def test_every_code_point_gives_what_the_algorithm_gives(settings):
    tokenizer = Tokenizer(every_letter(), **settings)
    code_points = [*range(0xD800), *range(0xE000, 0xF0000)]
    if settings.get("split_chinese", True):
        code_points += range(0xF0000, 0x110000)
    for start in range(0, len(code_points), 65536):
        batch = [f"{chr(each)} un{chr(each)}ab" for each in code_points[start : start + 65536]]
        assert_oracles_pieces(batch, tokenizer, settings)


def test_private_use_characters_are_unknown_where_ideographs_are_letters():
    # The tokenizer uses them internally for ideographs; in a text they are unknown.
    tokenizer = Tokenizer([*SPECIAL, "\u3400", "\U000f0000", "\U000f19c0"], split_chinese=False)
    batch = ["\u3400", *map(chr, (0xF0000, 0xF19C0, 0xFFFFD, 0x100000, 0x10FFFD))]
    assert tokenizer.tokenize(batch).to_list() == [[5], *[[1]] * 5]


@bounded
@given(
    batch=strategies.lists(
        strategies.lists(
            strategies.sampled_from([*ADDED, *"ABab<e1> .", "new  york", "COOL-"]), max_size=12
        ).map("".join),
        max_size=20,
    )
)
@pytest.mark.parametrize("lower_case", [True, False])
def test_added_tokens_are_cut_out_from_the_left_the_longest_first(batch, lower_case):
    tokenizer = tokenizer_of("added", lower_case=lower_case, added_tokens=ADDED)
    known = set(tokenizer.vocabulary)
    longest_first = sorted(map(re.escape, ADDED), key=len, reverse=True)
    added = re.compile(f"({'|'.join(longest_first)})", re.IGNORECASE if lower_case else 0)
    names = {token.lower() if lower_case else token: token for token in ADDED}

    def expected(text: str) -> list[str]:
        found = []
        for number, part in enumerate(added.split(text)):
            is_added = number % 2
            as_listed = part.lower() if lower_case else part
            found += [names[as_listed]] if is_added else oracle.pieces(part, known, lower_case)
        return found

    ids = tokenizer.tokenize(tf.constant(batch, tf.string)).to_list()
    found = [[tokenizer.vocabulary[number] for number in row] for row in ids]
    assert found == [expected(text) for text in batch]


def test_as_many_strings_stay_whole_as_there_are_stand_ins():
    added = [rf"<\E{number}>" for number in range(len(STAND_INS) - len(SPECIAL))]
    settings = {"special_tokens": "whole", "added_tokens": added}
    tokenizer = Tokenizer([*SPECIAL, *added, "a"], **settings)
    expected = [*range(5, 5 + len(added))]
    texts = ["".join(added), "[MASK]a", f"a{STAND_INS[-1]} {STAND_INS[0]}a"]
    assert tokenizer.tokenize(texts).to_list() == [
        expected,
        [4, 5 + len(added)],
        [1, 5 + len(added)],
    ]
    with pytest.raises(UserError, match="1001 added and special tokens .* takes at most 1000"):
        tokenizer.with_settings(added_tokens=[*added, "a"])


@pytest.mark.parametrize("token", ["\u3000a", "\u0301"])
def test_an_added_token_that_cleaned_text_cannot_hold_is_refused(token):
    with pytest.raises(UserError, match="begins or ends with a space, or only has characters that"):
        Tokenizer([*SPECIAL, token], added_tokens=[token])


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("strip_accents", False),
        ("split_chinese", False),
        ("added_tokens", ["ab"]),
        ("exact_tokens", ["ab"]),
    ],
)
def test_a_tokenizer_for_litert_refuses_what_it_cannot_do(setting, value):
    tokenizer = tokenizer_of("added", **{setting: value})
    message = (
        f"^LiteRT lacks operations to read strings with {setting} of this tokenizer; export a file "
        "that takes ids$"
    )
    with pytest.raises(UserError, match=message):
        LiteTokenizer(tokenizer)


def test_a_tokenizer_for_litert_follows_the_longest_word():
    tokenizer = tokenizer_of("letters", longest_word=3)
    batch = tf.constant(["aaa aaaa.e eeee", "\ud55c \ud55ca"])
    expected = tokenizer.tokenize_with_offsets(batch)
    found = LiteTokenizer(tokenizer).tokenize_with_offsets(batch)
    assert [part.to_list() for part in found] == [part.to_list() for part in expected]
