"""Every token predicts its neighbour."""

import numpy as np
import tensorflow as tf

from bert_tf.data.corpora.masking import causal_lm_targets

IDS = tf.constant([[2, 7, 8, 3], [2, 9, 3, 0]])
MASK = tf.constant([[1, 1, 1, 1], [1, 1, 1, 0]])


def test_each_token_predicts_the_one_after_it():
    made = causal_lm_targets(IDS, MASK)
    np.testing.assert_array_equal(made.input_word_ids, IDS)
    np.testing.assert_array_equal(made.positions, [[0, 1, 2], [0, 1, 0]])
    np.testing.assert_array_equal(made.ids, [[7, 8, 3], [9, 3, 0]])
    np.testing.assert_array_equal(made.weights, [[1, 1, 1], [1, 1, 0]])
    assert made.weights.dtype == tf.float32


def test_read_from_right_to_left_each_token_predicts_the_one_before_it():
    made = causal_lm_targets(IDS, MASK, reversed=True)
    np.testing.assert_array_equal(made.positions, [[1, 2, 3], [1, 2, 0]])
    np.testing.assert_array_equal(made.ids, [[2, 7, 8], [2, 9, 0]])
    np.testing.assert_array_equal(made.weights, [[1, 1, 1], [1, 1, 0]])
