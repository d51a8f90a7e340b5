"""Masks as create_masked_lm_predictions of google-research/bert makes them, and no masks at all."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.corpora import masking
from bert_tf.data.corpora.masking import Masking, causal_lm_targets

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
# Every third piece goes on with a word.
VOCABULARY = SPECIAL + [f"{'##' * (i % 3 == 2)}{i}" for i in range(1000)]


def rows(number: int, seq_len: int, seed: int = 0):
    """Pairs of random lengths: input_word_ids, input_mask."""
    source = np.random.default_rng(seed)
    ids = np.zeros((number, seq_len), np.int32)
    for row in ids:
        length = source.integers(5, seq_len + 1)
        row[:length] = source.integers(len(SPECIAL), len(VOCABULARY), length)
        row[0] = CLS
        row[[length - 1, source.integers(2, length - 2)]] = SEP
    return tf.constant(ids), tf.constant((ids != PAD).astype(np.int32))


def seed(k: int):
    return tf.constant([7, k], tf.int64)


def expected_number(lengths, most: int, rate: float = 0.15):
    return np.array([min(most, max(1, round(length * rate))) for length in lengths])


@pytest.mark.parametrize("whole_word", [False, True])
def test_inputs_and_targets_fit_together(whole_word):
    ids, mask = rows(500, 64)
    masked = Masking(VOCABULARY, 9, whole_word=whole_word)(ids, mask, seed(0))
    now, positions, labels, weights = (each.numpy() for each in masked)
    used = weights == 1
    assert set(np.unique(weights)) == {0, 1}
    assert (np.sort(used, axis=1)[:, ::-1] == used).all()
    assert (positions[~used] == 0).all() and (labels[~used] == 0).all()
    before = np.take_along_axis(ids.numpy(), positions, axis=1)
    assert (labels[used] == before[used]).all()
    assert not np.isin(labels[used], [PAD, CLS, SEP]).any()
    # Positions ascend, so that none is chosen twice.
    assert (np.diff(positions, axis=1)[used[:, 1:]] > 0).all()
    # Nothing but the chosen tokens has changed.
    restored = now.copy()
    np.put_along_axis(restored, positions, before, axis=1)
    np.testing.assert_array_equal(restored, ids)


@pytest.mark.parametrize("most", [5, 30])
def test_the_number_chosen_is_the_references_rounding(most):
    length = np.arange(5, 129)
    mask = (np.arange(128) < length[:, None]).astype(np.int32)
    ids = np.where(mask, 10, PAD).astype(np.int32)
    ids[:, 0] = CLS
    ids[np.arange(len(ids)), length - 1] = SEP
    masked = Masking(VOCABULARY, most)(tf.constant(ids), tf.constant(mask), seed(0))
    # 15 % of 10, 30, 50, 70 … tokens are 1.5, 4.5, 7.5, 10.5 …: Python rounds halves to even.
    np.testing.assert_array_equal(tf.reduce_sum(masked.weights, 1), expected_number(length, most))


def test_masks_are_80_10_10_of_15_percent_over_100_000_tokens():
    masker = Masking(VOCABULARY, 40)
    chosen = kept = masked_out = tokens = asked = 0
    spread = np.zeros(len(VOCABULARY))
    for k in range(12):
        ids, mask = rows(1000, 128, seed=k)
        result = masker(ids, mask, seed(k))
        used = result.weights.numpy() == 1
        now = np.take_along_axis(result.input_word_ids.numpy(), result.positions.numpy(), axis=1)[
            used
        ]
        before = result.ids.numpy()[used]
        lengths = mask.numpy().sum(1)
        chosen += used.sum()
        tokens += lengths.sum()
        asked += expected_number(lengths, 40).sum()
        masked_out += (now == MASK).sum()
        kept += (now == before).sum()
        spread += np.bincount(now[(now != MASK) & (now != before)], minlength=len(spread))
    assert chosen >= 100_000
    assert chosen == asked
    assert abs(chosen / tokens - 0.15) < 0.15 * 0.01
    assert abs(masked_out / chosen - 0.8) < 0.01
    assert abs(kept / chosen - 0.1) < 0.01
    assert abs(spread.sum() / chosen - 0.1) < 0.01
    # Random ids come from the whole vocabulary, special tokens too, with no favourites. [MASK] is
    # counted above.
    others = np.delete(spread, MASK)
    assert others[:4].min() > 0
    assert others.max() < others.mean() + 6 * np.sqrt(others.mean())


def test_every_position_is_chosen_equally_often():
    ids = np.full((20_000, 12), 10, np.int32)
    ids[:, 0], ids[:, 5], ids[:, 11] = CLS, SEP, SEP
    masked = Masking(VOCABULARY, 3)(tf.constant(ids), tf.ones_like(ids), seed(0))
    used = masked.weights.numpy() == 1
    counts = np.bincount(masked.positions.numpy()[used], minlength=12)
    assert counts[[0, 5, 11]].tolist() == [0, 0, 0]
    np.testing.assert_allclose(counts[counts > 0] / used.sum(), 1 / 9, rtol=0.05)


def test_the_seed_decides_the_masks():
    ids, mask = rows(50, 64)
    masker = Masking(VOCABULARY, 9)
    first, again, other = (masker(ids, mask, seed(k)) for k in (1, 1, 2))
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert (first.positions.numpy() != other.positions.numpy()).any()


def test_workers_mask_their_rows_as_the_whole_batch_is_masked():
    ids, mask = rows(12, 64)
    masker = Masking(VOCABULARY, 9)
    whole = masker(ids, mask, seed(3))
    for worker in range(3):
        share = masker(ids[worker::3], mask[worker::3], seed(3), worker, 3)
        for part, everything in zip(share, whole, strict=True):
            np.testing.assert_array_equal(part, everything[worker::3])


def choose_words_one_by_one(ids, number, order):
    """The reference's greedy choice for one row, its words in the order of their numbers."""
    words = []
    for position, token in enumerate(ids):
        if token in (CLS, SEP, PAD):
            continue
        goes_on = VOCABULARY[token].startswith("##") and words and words[-1][-1] == position - 1
        if goes_on:
            words[-1].append(position)
        else:
            words.append([position])
    chosen = []
    for word in np.argsort(order[: len(words)], kind="stable"):
        if len(chosen) + len(words[word]) <= number:
            chosen += words[word]
    return sorted(chosen)


@pytest.mark.parametrize(("seq_len", "number", "long_words"), [(64, 9, 0.4), (40, 6, 0.8)])
def test_whole_words_are_chosen_as_one_by_one_in_random_order(seq_len, number, long_words):
    source = np.random.default_rng(0)
    ids, mask = (each.numpy() for each in rows(300, seq_len))
    goes_on = np.array([token.startswith("##") for token in VOCABULARY])
    text = ~np.isin(ids, [PAD, CLS, SEP])
    # More pieces that go on with a word than the vocabulary's third.
    ids = np.where(text & (source.random(ids.shape) < long_words), len(SPECIAL) + 2, ids)
    order = source.random(ids.shape).astype(np.float32)
    numbers = expected_number(mask.sum(1), number)
    found = masking._choose_words(
        tf.constant(text), tf.constant(goes_on[ids]), tf.constant(numbers, tf.int32), order, number
    ).numpy()
    for row in range(len(ids)):
        expected = choose_words_one_by_one(ids[row], numbers[row], order[row])
        assert [p for p in found[row] if p < seq_len] == expected


def test_a_word_with_more_pieces_than_may_be_chosen_is_left_alone():
    # One word of 8 pieces and two words of one piece. In a row of 13 tokens, 2 are chosen.
    word = len(SPECIAL)
    ids = tf.constant([[CLS, word, *[word + 2] * 7, word, word + 1, SEP, SEP]] * 200)
    masked = Masking(VOCABULARY, 5, whole_word=True)(ids, tf.ones_like(ids), seed(0))
    np.testing.assert_array_equal(masked.positions[:, :2], [[9, 10]] * 200)
    np.testing.assert_array_equal(tf.reduce_sum(masked.weights, 1), [2] * 200)


def test_a_row_with_fewer_tokens_than_asked_for_has_all_of_them_chosen():
    ids = tf.constant([[CLS, 10, SEP, 11, SEP]])
    for whole_word in (False, True):
        masker = Masking(VOCABULARY, 5, rate=1.0, whole_word=whole_word)
        masked = masker(ids, tf.ones_like(ids), seed(0))
        np.testing.assert_array_equal(masked.positions, [[1, 3, 0, 0, 0]])
        np.testing.assert_array_equal(masked.weights, [[1, 1, 0, 0, 0]])


CAUSAL_IDS = tf.constant([[2, 7, 8, 3], [2, 9, 3, 0]])
CAUSAL_MASK = tf.constant([[1, 1, 1, 1], [1, 1, 1, 0]])


def test_each_token_predicts_the_one_after_it():
    made = causal_lm_targets(CAUSAL_IDS, CAUSAL_MASK)
    np.testing.assert_array_equal(made.input_word_ids, CAUSAL_IDS)
    np.testing.assert_array_equal(made.positions, [[0, 1, 2], [0, 1, 0]])
    np.testing.assert_array_equal(made.ids, [[7, 8, 3], [9, 3, 0]])
    np.testing.assert_array_equal(made.weights, [[1, 1, 1], [1, 1, 0]])
    assert made.weights.dtype == tf.float32


def test_read_from_right_to_left_each_token_predicts_the_one_before_it():
    made = causal_lm_targets(CAUSAL_IDS, CAUSAL_MASK, reversed=True)
    np.testing.assert_array_equal(made.positions, [[1, 2, 3], [1, 2, 0]])
    np.testing.assert_array_equal(made.ids, [[2, 7, 8], [2, 9, 0]])
    np.testing.assert_array_equal(made.weights, [[1, 1, 1], [1, 1, 0]])
