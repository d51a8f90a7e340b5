"""Documents joined by separators, and the examples that go across their ends."""

import numpy as np
import pytest

from bert_tf.data.corpora.pairing import Documents, ExampleRule, join, plan
from tests.data import counting

SEPARATOR = 9999


def joined(lengths, seed=0):
    """Tokens 0, 1, 2, … in documents whose sentences have these lengths, joined."""
    sentences = np.cumsum([0, *(length for document in lengths for length in document)])
    documents = Documents(sentences, np.cumsum([0, *map(len, lengths)]))
    tokens = np.arange(sentences[-1], dtype=np.uint16)
    return join(tokens, documents, SEPARATOR, np.random.default_rng(seed))


def test_documents_come_in_random_order_each_with_a_separator_at_its_end():
    lengths = [[3, 2], [4], [1, 1, 1], [2]]
    orders = set()
    for seed in range(10):
        tokens, starts = joined(lengths, seed)
        assert tokens.dtype == np.uint16
        bounds = starts.sentences[starts.documents]
        found = [tokens[a:b].tolist() for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
        assert all(document[-1] == SEPARATOR for document in found)
        texts = [tuple(document[:-1]) for document in found]
        assert sorted(texts) == [(0, 1, 2, 3, 4), (5, 6, 7, 8), (9, 10, 11), (12, 13)]
        orders.add(tuple(texts))
        for number, text in enumerate(texts):
            first, last = starts.documents[number : number + 2]
            inside = np.diff(starts.sentences[first : last + 1])
            inside[-1] -= 1
            assert inside.tolist() == next(each for each in lengths if sum(each) == len(text))
    assert len(orders) > 3


def segments(lengths, max_length, short=0.0, seed=0):
    tokens, starts = joined(lengths, seed)
    rng = np.random.default_rng(seed)
    rule = ExampleRule(max_length, short, next_sentence=False, joined=True)
    made = plan(starts, 200, rule, rng)
    assert (made.b_start == made.b_end).all()
    return [tokens[a:b].tolist() for a, b in zip(made.a_start, made.a_end, strict=True)]


@pytest.mark.parametrize("short", [0.0, 0.3])
def test_segments_are_full_and_cover_every_token(short):
    lengths = counting.random_lengths(number=60, sentences=4, longest=6)
    found = segments(lengths, max_length=32, short=short)
    assert max(map(len, found)) == 30
    full = np.mean([len(each) > 22 for each in found])
    # The last one of a pass takes what is left.
    assert full > (0.96 if not short else 0.6)
    assert (np.mean([len(each) <= 22 for each in found]) > 0.15) == bool(short)
    seen = {token for each in found for token in each}
    assert seen == {*range(sum(map(sum, lengths))), SEPARATOR}
    assert np.mean([SEPARATOR in each for each in found]) > 0.5


def test_no_segment_begins_or_ends_with_a_separator():
    # Sentences longer than a row are cut, also right before the separator.
    lengths = [[6], [12], [13], [3, 6], [7, 6, 6], [1], [5]] * 10
    for seed in range(5):
        for each in segments(lengths, max_length=8, short=0.5, seed=seed):
            assert each and each[0] != SEPARATOR != each[-1]
            assert len(each) <= 6


def test_a_document_that_ends_a_row_leaves_no_separator():
    assert set(map(tuple, segments([[4]] * 5, max_length=7))) == {
        tuple(range(4 * n, 4 * n + 4)) for n in range(5)
    }
