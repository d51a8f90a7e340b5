"""Texts packed in groups come out as those packed together."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.text import GroupPreprocessor, Preprocessor, Tokenizer
from tests import tiny

TEXTS = ["the cat sat .", "", "dogs ran " * 30, "a", "\N{SNOWMAN} fish", "good " * 7]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return tiny.tokenizer()


@pytest.mark.parametrize(("max_bytes", "pair"), [(1, True), (40, False), (10_000, True)])
def test_groups_of_any_size_give_the_same(tokenizer, max_bytes, pair):
    texts = (TEXTS, TEXTS[::-1]) if pair else (TEXTS,)
    grouped = tf.function(GroupPreprocessor(tokenizer, 24, max_bytes))
    features = grouped([tf.constant(each) for each in texts])
    expected = Preprocessor(tokenizer, 24, padding="batch")(texts)
    assert features.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(features[name], values, err_msg=name)


def test_no_texts_give_no_rows(tokenizer):
    grouped = tf.function(GroupPreprocessor(tokenizer, 24))
    features = grouped([tf.constant([], tf.string)])
    assert {values.shape[0] for values in features.values()} == {0}


def test_texts_that_do_not_pair_up_are_an_error(tokenizer):
    strings = tf.TensorSpec([None], tf.string)
    grouped = tf.function(GroupPreprocessor(tokenizer, 24), input_signature=[[strings, strings]])
    with pytest.raises(tf.errors.InvalidArgumentError):
        grouped([tf.constant(["a", "b"]), tf.constant(["a"])])
