"""Rows become batches that are the same from any start and for any number of workers."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.corpora import steps
from bert_tf.data.corpora.steps import StepData
from bert_tf.errors import UserError


def read_rows(start, stop, step):
    """Row n is (n, [n, n])."""
    numbers = np.arange(start, stop, step, dtype=np.int32)
    return numbers, np.stack([numbers, numbers], axis=1)


class Numbers(StepData):
    """Batches of six."""

    per_epoch = 1000

    def __init__(self, rows=read_rows):
        self.rows = rows
        super().__init__(self, batch_size=6, size="1000 numbers")

    def _held_out(self):
        return self

    def _elements(self, examples, stretch, columns, worker, workers):
        numbers, pairs = columns
        inputs = {"number": numbers, "stretch": tf.zeros_like(numbers, tf.int64) + stretch}
        return inputs, {"pair": pairs}


def make(*arguments):
    return Numbers().dataset(*arguments)


def take(dataset, number):
    batches = dataset.take(number).as_numpy_iterator()
    return [{k: v.tolist() for k, v in (inputs | targets).items()} for inputs, targets in batches]


def test_a_step_has_its_rows():
    (batch,) = take(make(5), 1)
    assert batch["number"] == [*range(30, 36)]
    assert batch["pair"] == [[n, n] for n in range(30, 36)]


def test_batches_do_not_depend_on_the_start():
    expected = take(make(), 300)
    assert [batch["number"][0] for batch in expected] == [*range(0, 1800, 6)]
    assert len({batch["stretch"][0] for batch in expected}) > 2
    for first in (1, 84, 85, 86, 200):
        assert take(make(first), 9) == expected[first : first + 9]


def test_shapes_are_known():
    inputs, targets = make(0, 0, 3).element_spec
    assert inputs["number"].shape == (2,)
    assert targets["pair"].shape == (2, 2)


def test_a_batch_may_be_larger_than_a_stretch(monkeypatch):
    expected = [batch["number"] for batch in take(make(), 5)]
    monkeypatch.setattr(steps, "_STRETCH_ROWS", 4)
    assert [batch["number"] for batch in take(make(), 5)] == expected


def test_workers_have_every_nth_row():
    whole = take(make(80), 10)
    for worker in range(3):
        share = take(make(80, worker, 3), 10)
        assert share == [{k: v[worker::3] for k, v in batch.items()} for batch in whole]


@pytest.mark.parametrize("number", [1, 85, 200])
def test_a_number_of_steps_is_kept_and_known(number):
    dataset = Numbers().dev_dataset(number)
    assert dataset.cardinality() == number
    assert take(dataset, 999) == take(make(), number)
    assert make().cardinality() == tf.data.INFINITE_CARDINALITY


def test_a_users_mistake_comes_back_as_what_it_was():
    def fails_at_1000(start, stop, step):
        if stop > 1000:
            raise UserError("row 1000 is damaged")
        return read_rows(start, stop, step)

    data = Numbers(fails_at_1000)
    dataset = data.dataset()
    with pytest.raises(UserError, match="row 1000"), data.explained_errors():
        take(dataset, 200)
    with pytest.raises(UserError, match="row 1000"):
        data.dataset(200)
    with pytest.raises(tf.errors.InvalidArgumentError), Numbers().explained_errors():
        tf.constant([1, 2, 3]) + tf.constant([1, 2])
