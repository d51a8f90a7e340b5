"""Training batches: each row once an epoch, with rows of its length, from any step on."""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.asking import batches_by_length
from bert_tf.data.batching import (
    EncodedRows,
    ShuffledBatches,
    flat,
    training_batches,
)
from bert_tf.data.mapped import joined

LENGTHS = np.random.default_rng(0).integers(3, 30, 203)


@dataclasses.dataclass
class Numbered:
    """Rows whose tokens are all the number of the row."""

    lengths: np.ndarray

    def take(self, rows: np.ndarray):
        width = self.lengths[rows].max()
        inputs = {"input_word_ids": np.tile(rows[:, None], [1, width]).astype(np.int32)}
        return inputs, rows.astype(np.int32)


def test_an_epoch_has_every_row_at_most_once_and_leaves_out_less_than_a_batch():
    order = ShuffledBatches(LENGTHS, 16, seed=3)
    epochs = [
        np.concatenate([order.rows(step) for step in range(start, start + 12)]) for start in (0, 12)
    ]
    for rows in epochs:
        assert len(set(rows.tolist())) == 12 * 16
    assert epochs[0].tolist() != epochs[1].tolist()


def test_rows_of_a_batch_are_of_similar_length():
    order = ShuffledBatches(LENGTHS, 16, seed=3)
    spread = np.mean([np.ptp(LENGTHS[order.rows(step)]) for step in range(12)])
    assert spread < 4 < np.ptp(LENGTHS)


def test_without_grouping_a_batch_has_rows_of_all_lengths_and_an_epoch_still_each_row_once():
    order = ShuffledBatches(LENGTHS, 16, seed=3, group_by_length=False)
    spreads = [np.ptp(LENGTHS[order.rows(step)]) for step in range(12)]
    assert min(spreads) > np.ptp(LENGTHS) / 2
    assert len(set(np.concatenate([order.rows(step) for step in range(12)]).tolist())) == 12 * 16
    (_, rows), *_ = training_batches(
        Numbered(LENGTHS), 16, seed=3, start=5, group_by_length=False
    ).take(1)
    np.testing.assert_array_equal(rows, order.rows(5))


def test_batches_from_a_step_on_are_those_of_the_whole():
    whole = training_batches(Numbered(LENGTHS), 16, seed=1, start=0)
    later = training_batches(Numbered(LENGTHS), 16, seed=1, start=14)
    for (_, expected), (_, found) in zip(whole.skip(14).take(4), later.take(4), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_parts_of_a_batch_make_it_up():
    wholes = training_batches(Numbered(LENGTHS), 16, seed=1, start=2)
    parts = [training_batches(Numbered(LENGTHS), 16, 1, 2, part, 4) for part in range(4)]
    for (_, whole), *of_parts in zip(wholes.take(3), *(p.take(3) for p in parts), strict=True):
        assert {rows.shape[0] for _, rows in of_parts} == {4}
        together = np.concatenate([rows for _, rows in of_parts])
        assert sorted(together.tolist()) == sorted(whole.numpy().tolist())


def test_evaluation_sees_every_row_once_the_longest_first():
    batches = list(batches_by_length(LENGTHS, 16))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(LENGTHS)))
    longest = [LENGTHS[rows].max() for rows in batches]
    assert longest == sorted(longest, reverse=True)


def test_encoded_rows_lose_their_padding_and_get_as_much_as_a_batch_needs():
    packed = {
        "input_word_ids": np.array([[1, 2, 3, 0], [4, 5, 0, 0]]),
        "input_mask": np.array([[1, 1, 1, 0], [1, 1, 0, 0]]),
        "input_type_ids": np.array([[0, 0, 1, 0], [0, 1, 0, 0]]),
    }
    tensors = {name: tf.constant(values) for name, values in packed.items()}
    rows = EncodedRows.of_arrays(joined(lambda first: iter([flat(tensors)] * 2), None))
    assert rows.lengths.tolist() == [3, 2, 3, 2]
    taken = rows.take(np.array([3, 0]))
    assert taken["input_word_ids"].tolist() == [[4, 5, 0], [1, 2, 3]]
    assert taken["input_mask"].tolist() == [[1, 1, 0], [1, 1, 1]]
    assert taken["input_type_ids"].tolist() == [[0, 1, 0], [0, 0, 1]]
    assert rows.take(np.array([1]))["input_mask"].shape == (1, 2)
