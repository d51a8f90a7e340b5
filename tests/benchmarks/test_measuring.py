"""How benchmarks measure: memory, sizes that vary, and pieces of a block computed in other ways."""

import argparse
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import growth, kernels
from benchmarks.allocation import environment

# A large block, made and freed again and again, as a library without a pool does.
BLOCKS = """
import resource
for _ in range(20):
    bytearray(b"x") * (64 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def test_a_block_that_is_freed_is_used_again():
    faults = [
        int(subprocess.check_output([sys.executable, "-c", BLOCKS], env=variables))
        for variables in (os.environ, environment())
    ]
    assert faults[1] < faults[0] / 5


class Contestant:
    """A step takes a millisecond for each token."""

    name = "bert_tf"

    def __init__(self):
        self.seconds = []
        self.resize(8, 128)

    def resize(self, batch, length):
        self._tokens = batch * length
        self.seconds.clear()

    def turn(self, steps):
        self.seconds += [self._tokens / 1e3] * steps

    def close(self):
        pass


def test_points_stand_at_what_is_varied(monkeypatch, tmp_path):
    monkeypatch.setattr(growth, "_start", lambda *arguments: [Contestant()])
    given = argparse.Namespace(rounds=1, steps=1, axes=["rows", "tokens", "weights"])
    curves = dict(growth._measure("float32", tmp_path, given))
    assert curves["rows"]["bert_tf"] == [(rows, rows * 128.0) for rows in growth.BATCHES]
    assert curves["tokens of a row"]["bert_tf"] == [(n, 8.0 * n) for n in growth.LENGTHS]
    assert len(curves["million weights of the blocks"]["bert_tf"]) == len(growth.SHAPES)
    given.axes = ["tokens"]
    assert dict(growth._measure("float32", tmp_path, given)).keys() == {"tokens of a row"}


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
