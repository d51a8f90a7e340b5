"""Where pieces come from: byte ranges of the original text."""

import itertools
import unicodedata

import pytest
import tensorflow as tf
from hypothesis import example, given, strategies

from tests.text import oracle
from tests.text.vocabularies import bounded, broken_texts, texts, tokenizer_of


def pieces_of(
    texts: list[str] | list[bytes], lower_case: bool = True
) -> list[list[tuple[str, int, int]]]:
    """For each text its pieces with their ranges."""
    tokenizer = tokenizer_of(lower_case)
    ids, starts, ends = tokenizer.tokenize_with_offsets(tf.constant(texts, tf.string))
    assert ids.to_list() == tokenizer.tokenize(tf.constant(texts, tf.string)).to_list()
    return [
        [(tokenizer.vocabulary[number], *span) for number, *span in zip(*row, strict=True)]
        for row in zip(ids.to_list(), starts.to_list(), ends.to_list(), strict=True)
    ]


def slices(text: str, lower_case: bool = True) -> list[tuple[str, str]]:
    """The pieces of one text with what they stand for."""
    data = text.encode()
    (found,) = pieces_of([data], lower_case)
    return [(piece, data[start:end].decode()) for piece, start, end in found]


def characters(data: bytes) -> list[tuple[int, int]]:
    """The byte range of every character of `data`, in which some bytes may be no character."""
    ranges, at = [], 0
    while at < len(data):
        sizes = (n for n in range(1, 5) if _is_character(data[at : at + n]))
        size = next(sizes, None)
        if size:
            ranges.append((at, at + size))
        at += size or 1
    return ranges


def _is_character(data: bytes) -> bool:
    try:
        return len(data.decode()) == 1
    except UnicodeDecodeError:
        return False


def check_ranges(data: bytes, found: list[tuple[str, int, int]], lower_case: bool) -> None:
    ranges = characters(data)
    assert {start for _, start, _ in found} <= {start for start, _ in ranges}
    assert {end for *_, end in found} <= {end for _, end in ranges}
    assert all(start < end for _, start, end in found)
    for (_, start, end), (_, next_start, next_end) in itertools.pairwise(found):
        assert start <= next_start
        assert end <= next_end
        if next_start < end:
            assert is_one_character(data[next_start:end].decode("utf-8", "ignore"))
    bounds = [0, *(end for *_, end in found)], [*(start for _, start, _ in found[1:]), len(data)]
    for (piece, start, end), before, after in zip(found, *bounds, strict=False):
        cleaned = oracle.words(data[start:end], lower_case)
        if piece == "[UNK]":
            assert len(cleaned) == 1
        elif before <= start and end <= after:
            assert normal(cleaned) == [normal([piece.removeprefix("##")])[0]]
        else:
            assert normal([piece.removeprefix("##")])[0] in normal(cleaned)[0]


def normal(words: list[str]) -> list[str]:
    """Words with final sigmas as any others: a slice does not show what follows it."""
    return [word.replace("\u03c2", "\u03c3") for word in words]


def is_one_character(text: str) -> bool:
    """True for one character with what is dropped after it, or with marks that were sorted."""
    kept = [each for each in text if oracle.words(each, lower_case=True)]
    _, *after = unicodedata.normalize("NFD", text)
    return len(kept) == 1 or all(map(unicodedata.combining, after))


@bounded
@given(batch=strategies.lists(texts, max_size=40))
@pytest.mark.parametrize("lower_case", [True, False])
def test_ranges_ascend_on_character_boundaries_and_normalise_to_their_piece(batch, lower_case):
    for text, found in zip(batch, pieces_of(batch, lower_case), strict=True):
        check_ranges(text.encode(), found, lower_case)


@bounded
@given(batch=strategies.lists(broken_texts, max_size=40))
@example(batch=["e\u0301\u0323\u302e".encode()]).via("a tone mark sorted before an accent")
@example(batch=["\u00e9\u0323\u302e".encode()]).via("the same, composed")
@pytest.mark.parametrize("lower_case", [True, False])
def test_ranges_hold_in_text_that_is_not_utf8(batch, lower_case):
    for data, found in zip(batch, pieces_of(batch, lower_case), strict=True):
        check_ranges(data, found, lower_case)


@pytest.mark.parametrize("text", ["\ud55c\u0308\u00e9", "\u3099\ud55c\0\u0301", " \ud55c\u0323 a"])
def test_ranges_do_not_depend_on_the_other_texts_of_a_batch(text):
    # The second text has a mark that stays, so the marks of the batch are sorted.
    alone, together = pieces_of([text]), pieces_of([text, "e\u302e"])
    assert together[0] == alone[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat", [("the", "The"), ("cat", "cat")]),
        ("CAF\u00c9!", [("cafe", "CAF\u00c9"), ("!", "!")]),
        # An accent that is a character of its own belongs to its letter.
        ("cafe\u0301 b", [("cafe", "cafe\u0301"), ("b", "b")]),
        # Deleted characters count when inside a piece, not after it.
        ("un\u00adable\u200b b", [("un", "un"), ("##able", "able"), ("b", "b")]),
        ("c\u00adat", [("cat", "c\u00adat")]),
        # One syllable, two pieces.
        ("\ud55c", [("\u1112", "\ud55c"), ("##\u1161\u11ab", "\ud55c")]),
        # Ideographs are spaced out.
        ("a\u4e2d\u4e2db", [("a", "a"), ("\u4e2d", "\u4e2d"), ("\u4e2d", "\u4e2d"), ("b", "b")]),
        # A capital whose lower case has fewer bytes, one with more.
        ("\u212a\u0130t", [("k", "\u212a"), ("##i", "\u0130"), ("##t", "t")]),
        ("\u03a3\u0391\u03a3", [("\u03c3\u03b1", "\u03a3\u0391"), ("##\u03c2", "\u03a3")]),
        ("x" * 201 + " cat", [("[UNK]", "x" * 201), ("cat", "cat")]),
        # Sorted marks share the range of their run.
        (
            "b\u302e\u1b44",
            [("b", "b"), ("##\u1b44", "\u302e\u1b44"), ("##\u302e", "\u302e\u1b44")],
        ),
        ("", []),
        (" \u200b\u0301 ", []),
    ],
)
def test_pieces_stand_for(text, expected):
    assert slices(text) == expected


def test_bytes_that_are_no_character_are_skipped():
    assert pieces_of([b"\xffc\xe4\xb8at \x80b\xf0"]) == [[("cat", 1, 6), ("b", 8, 9)]]


def test_a_long_text_among_short_ones_costs_no_table_of_both():
    """A mask of [rows, longest row] would be 40 GB here."""
    batch = ["\u00e9 a" * 100_000, *(["\u00e9"] * 100_000)]
    found = tokenizer_of(True).tokenize_with_offsets(batch)
    assert found.ids.row_lengths()[:2].numpy().tolist() == [200_000, 1]
