"""Pairs as create_instances_from_document of google-research/bert makes them, and segments."""

import numpy as np
import pytest

from bert_tf.data.corpora import pairing
from bert_tf.data.corpora.pairing import Documents, ExampleRule, join, plan
from tests.data import counting


def make_documents(lengths) -> Documents:
    tokens = [length for document in lengths for length in document]
    sentences = [len(document) for document in lengths]
    return Documents(np.cumsum([0, *tokens]), np.cumsum([0, *sentences]))


def make_plan(lengths, count, max_length=32, short=0.0, next_sentence=True, seed=0):
    rng = np.random.default_rng(seed)
    return plan(make_documents(lengths), count, ExampleRule(max_length, short, next_sentence), rng)


def document_of(lengths, tokens):
    """The document that each token is in."""
    documents = make_documents(lengths)
    starts = documents.sentences[documents.documents]
    return np.searchsorted(starts, tokens, side="right") - 1


MANY = counting.random_lengths(number=100, sentences=20, longest=12)


def test_there_are_exactly_as_many_examples_as_asked_for():
    for count in (1, 10, 5000):
        assert len(make_plan(MANY, count)) == count


def test_segments_are_filled_and_fit():
    made = make_plan(MANY, 1000, max_length=32, short=0.1)
    a, b = made.a_end - made.a_start, made.b_end - made.b_start
    assert (a >= 1).all() and (b >= 1).all()
    assert (a + b).max() == 32 - 3
    assert np.mean(a + b == 32 - 3) > 0.5


def test_a_true_next_segment_follows_directly_in_the_same_document():
    # Targets are never reached, so that nothing is truncated: every chunk is a whole document.
    lengths = [[3, 4, 5, 2]] * 50
    made = make_plan(lengths, 500, max_length=64)
    true = ~made.is_random_next
    assert 50 < true.sum() < 450
    assert (made.b_start[true] == made.a_end[true]).all()
    assert (document_of(lengths, made.a_start) == document_of(lengths, made.a_end - 1)).all()
    last = document_of(lengths, made.b_end[true] - 1)
    assert (document_of(lengths, made.a_start[true]) == last).all()


def test_a_random_next_segment_is_of_another_document():
    for lengths in (MANY, MANY[:2]):
        made = make_plan(lengths, 2000)
        random = made.is_random_next
        first = document_of(lengths, made.a_start[random])
        start = document_of(lengths, made.b_start[random])
        assert (first != start).all()
        assert (start == document_of(lengths, made.b_end[random] - 1)).all()


def test_every_other_document_is_drawn_equally_often():
    lengths = [[5] * 4000] * 5
    made = make_plan(lengths, 10_000, max_length=32)
    own, drawn = (document_of(lengths, start) for start in (made.a_start, made.b_start))
    random = made.is_random_next
    for document in range(5):
        counts = np.bincount(drawn[random & (own == document)], minlength=5)
        others = np.delete(counts, document)
        np.testing.assert_allclose(others / others.sum(), 0.25, atol=0.06)


def test_half_of_the_next_segments_are_random_where_chunks_have_several_sentences():
    lengths = counting.random_lengths(number=40, sentences=2000, longest=12)
    made = make_plan(lengths, 50_000, max_length=64)
    # The last chunk of a document may be a single sentence; there are 40 of those in 10,000.
    assert abs(made.is_random_next.mean() - 0.5) < 0.01


def test_documents_of_one_sentence_always_get_a_random_next_segment():
    assert make_plan([[6], [7], [8]], 300).is_random_next.all()


def test_unused_sentences_are_put_back():
    """With a random next segment the document goes on right after A, else after the chunk."""
    documents = make_documents(MANY)
    number = len(documents)
    order, targets = np.arange(number), np.full(number, 29)
    chunks = pairing._chunks(documents, order, targets, None, np.random.default_rng(0))
    document, start, a_stop, stop, is_random = chunks
    goes_on = np.where(is_random, a_stop, stop)
    same = document[1:] == document[:-1]
    assert (start[1:][same] == goes_on[:-1][same]).all()
    firsts, lasts = documents.documents[:-1], documents.documents[1:]
    assert (start[np.r_[True, ~same]] == firsts).all()
    assert (goes_on[np.r_[~same, True]] == lasts).all()
    # A chunk is the fewest sentences that reach the target, if the document has enough.
    tokens = documents.sentences
    reached = tokens[stop] - tokens[start] >= 29
    assert (tokens[stop - 1] - tokens[start] < 29).all()
    assert (reached | (stop == lasts[document])).all()


def test_a_few_documents_get_a_shorter_target_of_any_length():
    targets = pairing._targets(100_000, 29, 0.1, np.random.default_rng(0))
    # One in 28 of the short ones is as long as the others.
    assert np.mean(targets < 29) == pytest.approx(0.1 * 27 / 28, abs=0.005)
    counts = np.bincount(targets[targets < 29], minlength=29)
    assert counts[:2].sum() == 0
    np.testing.assert_allclose(counts[2:29], counts[2:29].mean(), rtol=0.25)


def truncate_one_by_one(a, b, longest):
    while a + b > longest:
        if a > b:
            a -= 1
        else:
            b -= 1
    return a, b


@pytest.mark.parametrize("longest", [2, 7, 8])
def test_the_longer_segment_loses_tokens_one_by_one(longest):
    a, b = (side.ravel() for side in np.mgrid[1:20, 1:20])
    found = pairing._truncated(a, b, longest)
    expected = [truncate_one_by_one(*pair, longest) for pair in zip(a, b, strict=True)]
    np.testing.assert_array_equal(np.stack(found, axis=1), expected)


def test_tokens_are_cut_from_front_and_back_alike():
    lengths = [[80]] * 10_000
    made = make_plan(lengths, 10_000, max_length=43)
    assert (made.a_end - made.a_start == 20).all()
    front = made.a_start % 80
    assert abs(front.mean() - 30) < 0.2
    assert abs(front.std() - np.sqrt(60) / 2) < 0.2


def test_the_plan_follows_from_the_random_generator():
    first, again, other = (make_plan(MANY, 500, short=0.1, seed=seed) for seed in (1, 1, 2))
    for name in vars(first):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert (first.a_start != other.a_start).any()


def test_every_document_has_its_turn_in_a_pass():
    for next_sentence in (True, False):
        rule = ExampleRule(32, 0.0, next_sentence)
        count = len(pairing.usual_pass(make_documents(MANY), rule))
        made = [make_plan(MANY, count, next_sentence=next_sentence, seed=seed) for seed in range(3)]
        starts = np.concatenate([each.a_start for each in made])
        assert set(document_of(MANY, starts)) == set(range(len(MANY)))


@pytest.mark.parametrize("next_sentence", [True, False])
def test_no_example_is_left_out_while_another_is_shown_twice(next_sentence):
    documents = make_documents(MANY)
    rule = ExampleRule(32, 0.0, next_sentence, joined=not next_sentence)
    one_pass = pairing._pairs if next_sentence else pairing._spans
    whole = one_pass(documents, None, rule, np.random.default_rng(3))
    # With the same random numbers: all examples of that pass, and three of another one.
    made = plan(documents, len(whole) + 3, rule, np.random.default_rng(3))
    kept = {*zip(whole.a_start.tolist(), whole.b_end.tolist(), strict=True)}
    found = [*zip(made.a_start.tolist(), made.b_end.tolist(), strict=True)]
    assert len(found) == len(whole) + 3
    assert kept <= {*found}
    fewer = plan(documents, len(whole) - 3, rule, np.random.default_rng(3))
    assert {*zip(fewer.a_start.tolist(), fewer.b_end.tolist(), strict=True)} <= kept


def test_every_token_of_a_document_of_one_line_is_shown():
    lengths = [[512, 512, 300], [40, 58, 59], [512]]
    made = make_plan(lengths, 2000)
    shown = np.zeros(sum(map(sum, lengths)), bool)
    for start, end in zip(made.a_start, made.a_end, strict=True):
        shown[start:end] = True
    assert shown[:1324].mean() == shown[1324 + 157 :].mean() == 1.0
    # Up to twice the room of 29 a sentence is cut to it, as in the reference.
    cut = pairing._cut_long_sentences(make_documents([[58, 59, 3], [1]]), 29)
    assert np.diff(cut.sentences).tolist() == [58, 15, 15, 15, 14, 3, 1]
    assert cut.documents.tolist() == [0, 6, 7]


def test_single_segments_cover_every_token_once_in_whole_sentences():
    lengths = [[5, 5, 5, 70, 5], [1], [30, 30, 1]]
    documents = make_documents(lengths)
    made = pairing._spans(documents, None, ExampleRule(32, 0.0, False), np.random.default_rng(0))
    spans = sorted(zip(made.a_start.tolist(), made.a_end.tolist(), strict=True))
    # 30 tokens fit. The sentence of 70 is cut; its last 10 tokens share a row with the next one.
    assert spans == [
        (0, 15), (15, 45), (45, 75), (75, 90), (90, 91), (91, 121), (121, 151), (151, 152)
    ]  # fmt: skip
    assert (made.b_start == made.b_end).all()
    assert not made.is_random_next.any()


SEPARATOR = 9999


def joined(lengths, seed=0):
    """Tokens 0, 1, 2, … in documents whose sentences have these lengths, joined."""
    documents = make_documents(lengths)
    tokens = np.arange(documents.sentences[-1], dtype=np.uint16)
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
