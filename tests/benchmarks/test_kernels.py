"""Pieces of a block in other ways: they compute the same, and nothing else is timed."""

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import kernels


def test_heads_in_words_of_eight_bytes_are_the_same():
    rows = tf.cast(np.random.default_rng(0).normal(size=(5, 3 * 768)), tf.bfloat16)
    np.testing.assert_array_equal(kernels._heads_in_words(rows), kernels._heads(rows))


def test_what_is_timed_is_handed_ready_inputs():
    given = []

    def way(x):
        given.append(x)
        return x * 2

    x = tf.ones([3, 4])
    step = kernels._repeated(way, x)
    assert {each.op.type for each in given} == {"Placeholder"}
    assert len({each.name for each in given}) == len(given) == kernels._REPEATED
    assert float(step(*[x] * kernels._REPEATED)) == pytest.approx(2 * kernels._REPEATED)
