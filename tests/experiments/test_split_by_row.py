"""A training file of GLUE is split by row."""

import sys

import pytest

from bert_tf.data.glue import read_glue
from experiments.glue import split_by_row

# The fourth row is also the first; the third holds what Python takes for the end of a line.
ROWS = ["good\t1", "bad\t0", "so\u2028so\t0", "good\t1", "fine\t1", "dull\t0"]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "all.tsv"
    path.write_text("\n".join(["sentence\tlabel", *ROWS]) + "\n")
    return path


def split(monkeypatch, *arguments) -> int:
    monkeypatch.setattr(sys, "argv", ["split_by_row", *map(str, arguments)])
    return split_by_row.main()


def test_rows_held_out_are_the_next_that_are_not_trained_on(path, tmp_path, monkeypatch, capsys):
    out = tmp_path / "SST-2"
    assert split(monkeypatch, path, "--train", 3, "--dev", 2, "--out", out) == 0
    told = capsys.readouterr().out
    assert told == f"{out}/train.tsv: 3 rows\n{out}/dev.tsv: 1 rows\n"
    parts = [read_glue(out / f"{name}.tsv", "sst2") for name in ("train", "dev")]
    assert [part.columns[0] for part in parts] == [["good", "bad", "so\u2028so"], ["fine"]]


def test_mistakes_are_told_in_one_line(path, tmp_path, monkeypatch, capsys):
    assert split(monkeypatch, path, "--train", 3, "--dev", 4, "--out", tmp_path / "out") == 2
    assert "has 6 rows; --train and --dev must be some of them each" in capsys.readouterr().err
    own = path.rename(tmp_path / "train.tsv")
    before = own.read_text()
    assert split(monkeypatch, own, "--train", 3, "--dev", 2, "--out", tmp_path) == 2
    error = capsys.readouterr().err
    assert "would be written over; choose another --out" in error and error.count("\n") == 1
    assert own.read_text() == before
    missing = tmp_path / "missing.tsv"
    assert split(monkeypatch, missing, "--train", 1, "--dev", 1, "--out", tmp_path / "out") == 2
    assert f"file not found: {missing}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
