"""Gradient accumulation works on one part of a batch at a time."""

import time

import pytest
import tensorflow as tf

from bert_tf.training.loop import accumulated, in_parts

PARTS = 4


def recording(events: list[str]):
    """A function of rows that notes when it begins and when its result is there."""

    def noted(name, seconds, value):
        def note(value):
            time.sleep(seconds)
            events.append(name)
            return value

        # A stateful function would wait for that of the previous part.
        noted = tf.numpy_function(note, [value], tf.float32, stateful=False)
        return tf.ensure_shape(noted, value.shape)

    # The wait leaves another part time to begin.
    return lambda rows: noted("ends", 0.1, noted("begins", 0.0, rows))


def test_a_part_begins_when_the_one_before_is_done():
    rows, weight = tf.ones([2 * PARTS, 8]), tf.Variable(tf.ones([8]))

    def gradients(events):
        compute = recording(events)
        return lambda rows: ([tf.reduce_sum(compute(rows), axis=0)], tf.constant(1.0))

    events: list[str] = []
    step = tf.function(lambda: accumulated(gradients(events), rows, PARTS, [weight.value()]))
    (total,), loss = step()
    assert events == ["begins", "ends"] * PARTS
    assert (total.numpy() == 2 * PARTS).all() and loss == PARTS
    events.clear()
    found = tf.function(lambda: in_parts(recording(events), rows, PARTS, [None, 8]))()
    assert events == ["begins", "ends"] * PARTS
    assert found.shape == rows.shape


@pytest.mark.parametrize("rows", [0, 1, PARTS - 1, PARTS + 1])
def test_a_batch_may_have_fewer_rows_than_parts(rows):
    """A device's share of the last batch, for example."""
    batch = tf.reshape(tf.range(8.0 * rows), [rows, 8])
    found = tf.function(lambda: in_parts(tf.negative, batch, PARTS, [None, 8]))()
    assert found.shape == batch.shape
    assert (found.numpy() == -batch.numpy()).all()
