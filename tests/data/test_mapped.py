"""Arrays that are made piece by piece: kept in a folder, resumed, shared."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bert_tf.data import mapped
from bert_tf.errors import UserError

COUNT = 50


def pieces(first, made=None):
    for number in range(first, COUNT):
        if made is not None:
            made.append(number)
        yield {
            "ids": np.arange(number, dtype=np.int32),
            "pairs": np.full((number % 3, 2), number, np.float32),
        }


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert (found[name].dtype, found[name].shape) == (values.dtype, values.shape)
        np.testing.assert_array_equal(found[name], values)


def test_a_folder_has_the_arrays_that_memory_has(tmp_path):
    expected = mapped.joined(pieces, None)
    same(mapped.joined(pieces, tmp_path / "a"), expected)
    made = []
    same(mapped.joined(lambda first: pieces(first, made), tmp_path / "a"), expected)
    assert not made


def test_what_was_made_before_a_failure_is_not_made_again(tmp_path):
    def failing(first):
        for number, piece in enumerate(pieces(first)):
            if number == 40:
                raise RuntimeError
            yield piece

    with pytest.raises(RuntimeError):
        mapped.joined(failing, tmp_path)
    made = []
    same(mapped.joined(lambda first: pieces(first, made), tmp_path), mapped.joined(pieces, None))
    assert made == [*range(32, COUNT)]


@pytest.mark.parametrize("damage", ["index", "array"])
def test_a_damaged_folder_is_made_again(tmp_path, damage):
    mapped.joined(pieces, tmp_path)
    if damage == "index":
        (tmp_path / "index.json").write_text("{")
    else:
        os.truncate(tmp_path / "ids", 8)
    same(mapped.joined(pieces, tmp_path), mapped.joined(pieces, None))


def test_a_folder_that_cannot_be_written_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write .*file"):
        mapped.joined(pieces, tmp_path / "file" / "a")


PROGRAM = """
import sys, time
from pathlib import Path
from bert_tf.data import mapped
from tests.data.test_mapped import pieces

def slow(first):
    for piece in pieces(first):
        time.sleep(float(sys.argv[2]))
        yield piece

mapped.joined(slow, Path(sys.argv[1]))
"""


def start(folder, seconds):
    command = [sys.executable, "-c", PROGRAM, str(folder), str(seconds)]
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": os.getcwd()})


def wait_for_pieces(folder):
    for _ in range(600):
        if (folder / "index.json").exists():
            return
        time.sleep(0.1)
    raise AssertionError("nothing was written")


def test_a_process_that_is_killed_is_continued(tmp_path):
    process = start(tmp_path, 0.05)
    wait_for_pieces(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not json.loads((tmp_path / "index.json").read_text())["finished"]
    made = []
    same(mapped.joined(lambda first: pieces(first, made), tmp_path), mapped.joined(pieces, None))
    assert len(made) < COUNT


def test_one_process_writes_and_another_waits_for_it(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(mapped.logger, "info", said.append)
    process = start(tmp_path, 0.05)
    wait_for_pieces(tmp_path)
    made = []
    same(mapped.joined(lambda first: pieces(first, made), tmp_path), mapped.joined(pieces, None))
    assert (made, process.wait()) == ([], 0)
    assert said == [f"{tmp_path}: another process tokenizes the same rows; waiting for it"]
    assert {path.name for path in Path(tmp_path).iterdir()} == {
        "ids",
        "pairs",
        "index.json",
        "lock",
    }
