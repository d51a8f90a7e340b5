"""A file that is written piece by piece goes on where it stopped."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.errors import UserError
from bert_tf.io.resumable import resumable_file

ROOT = Path(__file__).resolve().parents[2]
WORK = {"texts": "a", "model": "b"}
KILLED = """
import os, signal, sys
from bert_tf.io.resumable import resumable_file
with resumable_file(sys.argv[1], {"texts": "a", "model": "b"}) as file:
    file.append(b"one", 1)
    file._handle.write(b"half of tw")
    file._handle.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def stop_after_one(path, work=WORK):
    with pytest.raises(ZeroDivisionError), resumable_file(path, work) as file:
        assert file.done == 0
        file.append(b"one", 1)
        raise ZeroDivisionError


def test_pieces_become_a_file(tmp_path):
    path = tmp_path / "new" / "file"
    with resumable_file(path, WORK) as file:
        file.append(b"one", 1)
        file.append(b"two", 2)
        assert not path.exists()
    assert path.read_bytes() == b"onetwo"
    assert names(path.parent) == ["file"]


def test_the_same_work_goes_on(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    stop_after_one(path)
    assert path.read_bytes() == b"old"
    with resumable_file(path, dict(reversed(WORK.items()))) as file:
        assert file.done == 1
        file.append(b"two", 2)
    assert path.read_bytes() == b"onetwo"
    assert names(tmp_path) == ["file"]


def test_other_work_starts_anew(tmp_path, capsys):
    stop_after_one(tmp_path / "file")
    with resumable_file(tmp_path / "file", WORK | {"model": "c"}) as file:
        assert file.done == 0
        file.append(b"new", 1)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert "other work or is damaged; starting from the beginning" in capsys.readouterr().err


def test_a_killed_process_loses_only_the_piece_that_it_was_writing(tmp_path):
    path = tmp_path / "file"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=ROOT, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "file.part").read_bytes() == b"onehalf of tw"
    with resumable_file(path, WORK) as file:
        assert file.done == 1
        file.append(b"two", 2)
    assert path.read_bytes() == b"onetwo"


@pytest.mark.parametrize(
    "state",
    [
        *("", "{", "[" * 100_000, "[]"),
        json.dumps({"work": WORK, "done": 1}),
        json.dumps({"work": WORK, "done": "1", "bytes": 3}),
        json.dumps({"work": WORK, "done": 1, "bytes": 4}),
        json.dumps({"work": WORK, "done": 1, "bytes": -1}),
    ],
)
def test_damaged_notes_start_anew(tmp_path, state):
    stop_after_one(tmp_path / "file")
    (tmp_path / "file.part.json").write_text(state)
    with resumable_file(tmp_path / "file", WORK) as file:
        assert file.done == 0


def test_nothing_is_left_of_work_that_failed_at_once(tmp_path):
    with pytest.raises(UserError), resumable_file(tmp_path / "file", WORK):
        raise UserError("no texts")
    assert names(tmp_path) == []


def test_two_do_not_write_the_same_file(tmp_path):
    path = tmp_path / "file"
    with resumable_file(path, WORK) as file:
        file.append(b"one", 1)
        told = "another process is writing .*file; wait"
        with pytest.raises(UserError, match=told), resumable_file(path, WORK):
            pass
        file.append(b"two", 2)
    assert path.read_bytes() == b"onetwo"


def test_places_where_no_file_can_be(tmp_path):
    (tmp_path / "file").write_text("")
    for path, told in (
        *((path, "it is not a regular file") for path in (tmp_path, "/dev/null")),
        (tmp_path / "file" / "below", "cannot write"),
    ):
        with pytest.raises(UserError, match=told), resumable_file(path, WORK):
            pass
