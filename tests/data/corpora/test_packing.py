"""Planned ranges become rows with their special tokens."""

import numpy as np

from bert_tf.data.corpora.examples import pack
from bert_tf.data.corpora.pairing import Plan

PAD, CLS, SEP = 0, 2, 3
TOKENS = np.arange(10, 40, dtype=np.uint16)


def make_plan(*rows):
    """Rows of (a_start, a_end, b_start, b_end)."""
    return Plan(*np.array(rows).T, np.zeros(len(rows), bool))


def test_pairs_and_single_segments_stand_between_their_special_tokens():
    packed = pack(TOKENS, make_plan((0, 2, 5, 8), (29, 30, 0, 1), (3, 5, 5, 5)), 8, CLS, SEP, PAD)
    np.testing.assert_array_equal(
        packed.ids,
        [
            [CLS, 10, 11, SEP, 15, 16, 17, SEP],
            [CLS, 39, SEP, 10, SEP, PAD, PAD, PAD],
            [CLS, 13, 14, SEP, PAD, PAD, PAD, PAD],
        ],
    )
    np.testing.assert_array_equal(packed.first_length, [4, 3, 4])
    np.testing.assert_array_equal(packed.length, [8, 5, 4])
    assert {column.dtype for column in packed} == {np.dtype(np.int32)}
