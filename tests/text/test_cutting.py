"""Byte ranges are cut out of their texts."""

import tensorflow as tf

from bert_tf.text.word_splitting import cut


def test_ranges_are_cut_from_their_own_text():
    texts = [b"caf\xc3\xa9 au lait", b"", b"\xff\x00b"]
    starts = tf.ragged.constant([[0, 3, 6], [], [1, 2, 0]], tf.int32)
    ends = tf.ragged.constant([[5, 5, 6], [], [3, 3, 1]], tf.int32)
    pieces = cut(tf.constant(texts), starts, ends)
    assert pieces.to_list() == [[b"caf\xc3\xa9", b"\xc3\xa9", b""], [], [b"\x00b", b"b", b"\xff"]]


def test_there_may_be_nothing_to_cut():
    none = tf.RaggedTensor.from_row_splits(tf.zeros([0], tf.int32), [0, 0, 0])
    assert cut(tf.constant(["a", "b"]), none, none).to_list() == [[], []]
    assert cut(tf.constant([], tf.string), none[:0], none[:0]).to_list() == []
