"""Examples are numbered without end, and each can be had without those before it."""

import numpy as np
import pytest

from bert_tf.data.corpora.examples import Examples, pack
from bert_tf.data.corpora.pairing import ExampleRule, Plan
from bert_tf.data.corpora.token_shards import TRAIN, TokenShards
from tests.data import counting

LENGTHS = counting.random_lengths(number=150, sentences=12, longest=9)
FIRST_WORD = len(counting.SPECIAL)


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> TokenShards:
    folder = tmp_path_factory.mktemp("shards") / "out"
    made = counting.shards(folder, LENGTHS, shard_tokens=300)
    assert len(made.parts[TRAIN]) > 16  # so that there are several lanes
    return made


def open_examples(shards, seed=0, next_sentence=True, max_length=32) -> Examples:
    rule = ExampleRule(max_length, short_probability=0.1, next_sentence=next_sentence)
    return Examples(shards, shards.parts[TRAIN], rule, seed)


def assert_same(one, two):
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def words(packed) -> list[list[int]]:
    """The numbers of the words in each row."""
    return [[int(i) - FIRST_WORD for i in row if i >= FIRST_WORD] for row in packed.ids]


def test_an_example_is_the_same_however_one_comes_to_it(shards):
    read_through = open_examples(shards)
    size = 50
    batches = [
        read_through.rows(start, start + size)
        for start in range(0, 3 * read_through.per_epoch, size)
    ]
    for number in (0, 1, 7, len(batches) // 2, len(batches) - 1):
        fresh = open_examples(shards)
        assert_same(fresh.rows(number * size, (number + 1) * size), batches[number])


def test_rows_go_on_across_pools_and_epochs(shards):
    examples = open_examples(shards)
    end = 2 * examples.per_epoch
    packed = examples.rows(end - 500, end + 500)
    assert len(packed.ids) == len(packed.next_sentence_labels) == 1000
    apart = [examples.rows(start, start + 100) for start in range(end - 500, end + 500, 100)]
    np.testing.assert_array_equal(packed.ids, np.concatenate([each.ids for each in apart]))


def test_workers_share_the_rows_of_a_batch(shards):
    examples = open_examples(shards)
    whole = examples.rows(40, 52)
    for worker in range(3):
        share = examples.rows(40 + worker, 52, 3)
        assert_same(share, [column[worker::3] for column in whole])


@pytest.mark.parametrize("next_sentence", [True, False])
def test_a_few_epochs_use_every_document(shards, next_sentence):
    examples = open_examples(shards, next_sentence=next_sentence)
    ends = np.cumsum([sum(document) for document in LENGTHS])
    packed = examples.rows(0, 3 * examples.per_epoch)
    seen = {int(np.searchsorted(ends, row[0], side="right")) for row in words(packed)}
    assert seen == set(range(len(LENGTHS)))


def test_tokens_keep_their_order_inside_segments(shards):
    for next_sentence in (True, False):
        packed = open_examples(shards, next_sentence=next_sentence).rows(0, 1000)
        for ids, first, length, _ in zip(*packed, strict=True):
            for segment in (ids[1 : first - 1], ids[first : length - 1]):
                assert (np.diff(segment) == 1).all()


def test_labels_say_whether_b_follows_a(shards):
    packed = open_examples(shards).rows(0, 2000)
    ends = np.cumsum([sum(document) for document in LENGTHS])
    # Where a pair is shorter than the row, it is whole: B begins right after A.
    whole = true = 0
    for ids, first, length, label in zip(*packed, strict=True):
        a, b = (int(ids[i]) - FIRST_WORD for i in (first - 2, first))
        same = np.searchsorted(ends, a, side="right") == np.searchsorted(ends, b, side="right")
        assert same == (label == 0)
        if label == 0:
            true += 1
            assert b > a
            if length < 32:
                whole += 1
                assert b == a + 1
    assert whole > 20 and true > 500


def test_pools_mix_shards(shards):
    packed = open_examples(shards).rows(0, 64)
    starts = np.array([row[0] for row in words(packed)])
    assert len(set(starts // 300)) > 4


def test_an_epoch_is_about_one_pass_over_the_tokens(shards):
    examples = open_examples(shards, next_sentence=False, max_length=64)
    packed = examples.rows(0, examples.per_epoch)
    tokens = sum(map(len, words(packed)))
    # A small corpus repeats more: its passes differ more in their number of examples.
    assert 0.9 < tokens / sum(map(sum, LENGTHS)) < 1.3


def test_pairs_and_single_segments_stand_between_their_special_tokens():
    pad, cls, sep = 0, 2, 3
    ranges = np.array([(0, 2, 5, 8), (29, 30, 0, 1), (3, 5, 5, 5)])
    plan = Plan(*ranges.T, np.zeros(3, bool))
    packed = pack(np.arange(10, 40, dtype=np.uint16), plan, 8, cls, sep, pad)
    np.testing.assert_array_equal(
        packed.ids,
        [
            [cls, 10, 11, sep, 15, 16, 17, sep],
            [cls, 39, sep, 10, sep, pad, pad, pad],
            [cls, 13, 14, sep, pad, pad, pad, pad],
        ],
    )
    np.testing.assert_array_equal(packed.first_length, [4, 3, 4])
    np.testing.assert_array_equal(packed.length, [8, 5, 4])
    assert {column.dtype for column in packed} == {np.dtype(np.int32)}
