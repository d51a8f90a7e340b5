"""The curves of growth: each point stands where its size is."""

import argparse

from benchmarks import growth


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
    given = argparse.Namespace(rounds=1, steps=1)
    curves = dict(growth._measure("float32", tmp_path, given))
    assert curves["rows"]["bert_tf"] == [(rows, rows * 128.0) for rows in growth.BATCHES]
    assert curves["tokens of a row"]["bert_tf"] == [(n, 8.0 * n) for n in growth.LENGTHS]
    assert len(curves["million weights of the blocks"]["bert_tf"]) == len(growth.SHAPES)
