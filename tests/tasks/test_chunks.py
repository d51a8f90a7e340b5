"""Windows are worked on in chunks, with the result of all at once."""

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.text.parts import map_in_chunks
from tests.tasks import tiny_objects as tiny


@pytest.fixture
def double():
    """A model that notes how many rows it is given."""
    seen = []

    def function(inputs):
        ids = inputs["ids"]
        tf.py_function(lambda rows: seen.append(int(rows)), [tf.shape(ids)[0]], [])
        return {"twice": 2 * ids, "sum": tf.reduce_sum(tf.cast(ids, tf.float32), axis=1)}

    function.seen = seen
    return function


@pytest.mark.parametrize(("rows", "chunks"), [(0, [0]), (1, [1]), (3, [3]), (8, [3, 3, 2])])
def test_the_result_is_that_of_all_rows_at_once(double, rows, chunks):
    ids = np.arange(rows * 5, dtype=np.int32).reshape(rows, 5)
    answer = tf.function(lambda ids: map_in_chunks(double, {"ids": ids}, max_tokens=15))
    answer = answer.get_concrete_function(tf.TensorSpec([None, None], tf.int32))

    outputs = answer(tf.constant(ids))

    np.testing.assert_array_equal(outputs["twice"], 2 * ids)
    np.testing.assert_array_equal(outputs["sum"], ids.sum(axis=1))
    assert double.seen == chunks


def test_a_row_longer_than_a_chunk_is_taken_alone(double):
    outputs = tf.function(lambda ids: map_in_chunks(double, {"ids": ids}, max_tokens=2))(
        tf.ones([2, 5], tf.int32)
    )

    assert outputs["twice"].shape == (2, 5)
    assert double.seen == [1, 1]


def test_answering_and_evaluating_trace_a_model_once():
    traced = []

    class Traced(bert_tf.TextClassifier):
        def vectors_of(self, inputs, training=False):
            traced.append(inputs)
            return super().vectors_of(inputs, training)

    model = Traced(tiny.encoder(), tiny.tokenizer(), labels=["bad", "good"])
    traced.clear()
    model.predict(tiny.TEXTS, verbose=0)
    model.evaluate(tiny.TEXTS, tiny.LABELS, verbose=0)
    assert len(traced) == 1
