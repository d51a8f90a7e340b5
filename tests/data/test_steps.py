"""Rows become batches that are the same from any start and for any number of workers."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import steps
from bert_tf.data.steps import StepReader
from bert_tf.errors import UserError


def read_rows(start, stop, step):
    """Row n is (n, [n, n])."""
    numbers = np.arange(start, stop, step, dtype=np.int32)
    return numbers, np.stack([numbers, numbers], axis=1)


def make(reader=None, rows=read_rows, **options):
    return (reader or StepReader()).batches(rows, [tf.int32] * 2, 6, **options)


def take(dataset, number):
    return [
        tuple(part.tolist() for part in each) for each in dataset.take(number).as_numpy_iterator()
    ]


def test_a_step_has_its_rows():
    number, column, pairs = next(make(first=5).as_numpy_iterator())
    assert number == 5
    assert column.tolist() == [*range(30, 36)]
    assert pairs.tolist() == [[n, n] for n in range(30, 36)]


def test_batches_do_not_depend_on_the_start_nor_on_how_many_are_read_together(monkeypatch):
    expected = take(make(), 300)
    assert [step for step, _, _ in expected] == [*range(300)]
    for together in (1, 7, 6 * 40):
        monkeypatch.setattr(steps, "_ROWS_READ", together)
        assert take(make(first=11), 100) == expected[11:111]


def test_workers_have_every_nth_row():
    whole = take(make(first=2), 200)
    for worker in range(3):
        share = take(make(first=2, worker=worker, workers=3), 200)
        assert share == [(n, a[worker::3], b[worker::3]) for n, a, b in whole]


@pytest.mark.parametrize("number", [1, 85, 86, 200])
def test_a_number_of_steps_is_kept_and_known(number):
    dataset = make(first=3, steps=number)
    assert dataset.cardinality() == number
    assert take(dataset, 999) == take(make(first=3), number)
    assert make().cardinality() == tf.data.INFINITE_CARDINALITY


def test_a_users_mistake_comes_back_as_what_it_was():
    def fails_at_1000(start, stop, step):
        if stop > 1000:
            raise UserError("row 1000 is damaged")
        return read_rows(start, stop, step)

    reader = StepReader()
    dataset = make(reader, fails_at_1000)
    with pytest.raises(UserError, match="row 1000"), reader.explained_errors():
        take(dataset, 200)
    with pytest.raises(UserError, match="row 1000"):
        make(reader, fails_at_1000, first=200)
    with pytest.raises(tf.errors.InvalidArgumentError), StepReader().explained_errors():
        tf.constant([1, 2, 3]) + tf.constant([1, 2])
