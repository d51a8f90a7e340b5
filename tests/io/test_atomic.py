"""What is written appears whole or not at all."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bert_tf.errors import UserError
from bert_tf.io.atomic import (
    atomic_path,
    clear_unfinished,
    is_stream,
    locked,
    make_folder,
    remove_folder,
    write_text,
)
from bert_tf.io.files import read_text

ROOT = Path(__file__).resolve().parents[2]


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_text_reads_back_as_written(tmp_path):
    write_text(tmp_path / "new" / "a.txt", "naïve\r\n\u2028日本")

    assert read_text(tmp_path / "new" / "a.txt") == "naïve\r\n\u2028日本"
    assert names(tmp_path) == ["a.txt", "new"]


def test_a_file_is_not_begun_where_a_folder_is(tmp_path):
    told = "cannot write .*: it is a folder; name a file"
    with pytest.raises(UserError, match=told), atomic_path(tmp_path, is_file=True):
        pytest.fail("the work has begun")
    with pytest.raises(UserError, match=told):
        write_text(tmp_path, "x")


def test_the_path_is_not_there_before_the_end(tmp_path):
    with atomic_path(tmp_path / "a") as new:
        new.write_text("x")
        assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_fails_half_way_leaves_the_old_and_no_rubbish(tmp_path, error):
    write_text(tmp_path / "a", "old")
    with pytest.raises(error), atomic_path(tmp_path / "a") as new:
        new.write_text("half")
        raise error

    assert read_text(tmp_path / "a") == "old"
    assert names(tmp_path) == ["a"]


def test_a_folder_that_cannot_take_its_place_leaves_the_old_one(tmp_path, monkeypatch):
    with atomic_path(tmp_path / "run") as new:
        new.mkdir()
        (new / "good").touch()
    rename = os.rename
    calls = []

    def refuse_the_second(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse_the_second)
    with pytest.raises(UserError, match="cannot write"), atomic_path(tmp_path / "run") as new:
        new.mkdir()

    assert names(tmp_path) == ["good", "run"]


@pytest.mark.parametrize("name", ["old", "run", "run.old"])
def test_a_folder_of_any_name_is_written_whole_or_not_at_all(tmp_path, name):
    def write(content):
        with atomic_path(tmp_path / name) as new:
            new.mkdir()
            (new / content).touch()
            if content == "half":
                raise RuntimeError

    with pytest.raises(RuntimeError):
        write("half")
    assert names(tmp_path) == []
    write("good")
    with pytest.raises(RuntimeError):
        write("half")
    assert names(tmp_path) == ["good", name]
    write("better")
    assert names(tmp_path) == ["better", name]


def test_a_folder_is_removed_with_all_that_is_in_it(tmp_path):
    (tmp_path / "run" / "deep").mkdir(parents=True)
    (tmp_path / "run" / "deep" / "file").touch()
    (tmp_path / "other").touch()

    remove_folder(tmp_path / "run")

    assert names(tmp_path) == ["other"]


def test_a_folder_whose_removal_is_cut_short_does_not_come_back(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").touch()
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    remove_folder(tmp_path / "run")
    monkeypatch.undo()
    assert len(names(tmp_path)) == 3 and not (tmp_path / "run").exists()

    clear_unfinished(tmp_path)

    assert names(tmp_path) == []


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(UserError, match="cannot write .*pipe: it is a device or a pipe; name a"):
        write_text(tmp_path / "pipe", "x")
    assert (tmp_path / "pipe").is_fifo() and names(tmp_path) == ["pipe"]


def test_streams_are_told_from_files_and_folders(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")

    assert is_stream(tmp_path / "pipe") and is_stream(os.devnull)
    for name in ("file", ".", "missing", "x" * 300, "file/inside"):
        assert not is_stream(tmp_path / name)


def test_a_folder_is_made_once_with_those_above_it(tmp_path):
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")

    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write .*file"):
        make_folder(tmp_path / "file")


@pytest.mark.parametrize("path", [".", "..", "/", "runs/.."])
def test_a_path_without_a_name_of_its_own_is_refused(path):
    with pytest.raises(UserError, match="cannot replace"), atomic_path(path):
        pytest.fail("nothing may be written there")


def run_until_killed(folder, code):
    """Runs `code` in `folder`, in a process that ends itself by SIGKILL."""
    begin = (
        # As the command line does, it imports bert_tf without TensorFlow.
        "import os, signal, sys\nsys.argv = ['bert-tf']\n"
        "from bert_tf.io.atomic import atomic_path, locked\n"
        f"os.chdir({str(folder)!r})\n"
    )
    process = subprocess.run([sys.executable, "-c", begin + code], cwd=ROOT)
    assert process.returncode == -signal.SIGKILL


HALF = """
with atomic_path('a.txt') as file, atomic_path('run') as folder:
    file.write_text('half')
    (folder / 'deep').mkdir(parents=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_cleared(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    run_until_killed(tmp_path, HALF)
    assert len(list(tmp_path.iterdir())) == 3

    clear_unfinished(tmp_path)

    assert names(tmp_path) == ["a.txt"]
    assert read_text(tmp_path / "a.txt") == "old"


def test_what_a_killed_process_left_goes_when_anything_is_written_there(tmp_path):
    run_until_killed(tmp_path, HALF)
    assert len(list(tmp_path.iterdir())) == 2

    with atomic_path(tmp_path / "living") as new:
        new.mkdir()
        write_text(tmp_path / "other.txt", "new")
        (left,) = tmp_path.glob(".*")
        assert left.name.startswith(".living.")

    assert names(tmp_path) == ["living", "other.txt"]


def test_a_temporary_folder_that_another_process_removes_too_early_is_made_again(
    tmp_path, monkeypatch
):
    make, made = tempfile.mkdtemp, []

    def make_and_lose_one(*arguments):
        made.append(make(*arguments))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_lose_one)
    write_text(tmp_path / "a", "x")

    assert len(made) == 2 and names(tmp_path) == ["a"]


def test_what_is_being_written_under_the_same_name_stays(tmp_path):
    with atomic_path(tmp_path / "a") as first:
        first.write_text("first")
        write_text(tmp_path / "a", "second")
        assert read_text(tmp_path / "a") == "second"

    assert read_text(tmp_path / "a") == "first"
    assert names(tmp_path) == ["a"]


WRITER = """
import sys
from pathlib import Path
from bert_tf.io.atomic import atomic_path
is_file = sys.argv[1] == "file"
with atomic_path("out", is_file, is_new=True) as new:
    print("begun", flush=True)
    input()
    new.mkdir() if not is_file else None
    (new if is_file else new / "a").write_text(sys.argv[2])
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_one_of_two_processes_that_write_a_new_path_is_refused(tmp_path, kind):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    options = {"cwd": tmp_path, "env": environment, "text": True, "stdin": subprocess.PIPE}
    command = [sys.executable, "-c", WRITER, kind]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    first = subprocess.Popen([*command, "first"], **options, **streams)
    assert first.stdout.readline() == "begun\n"
    options.pop("stdin")
    second = subprocess.run([*command, "second"], **options, input="\n", capture_output=True)
    assert "another process is writing out; wait" in second.stderr
    first.communicate("\n")
    assert first.returncode == 0 and second.returncode == 1
    out = tmp_path / "out"
    assert (out if kind == "file" else out / "a").read_text() == "first"
    third = subprocess.run([*command, "third"], **options, input="\n", capture_output=True)
    assert "out exists already; remove it" in third.stderr
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_appears_meanwhile_is_not_replaced(tmp_path, kind):
    """As where two processes begin at the same moment, or on a file system without locks."""
    path = tmp_path / "a"
    told = pytest.raises(UserError, match="a exists already; remove it")
    with told, atomic_path(path, kind == "file", is_new=True) as new:
        for each in (new, path):
            file = each
            if kind == "folder":
                each.mkdir()
                file = each / "a"
            file.write_text(each.parent.name)
    assert names(tmp_path) == (["a"] if kind == "file" else ["a", "a"])


def test_a_folder_that_was_half_replaced_comes_back(tmp_path):
    with atomic_path(tmp_path / "run.d") as new:
        new.mkdir()
        (new / "good").touch()
    run_until_killed(
        tmp_path,
        "def rename(*paths, rename=os.rename):\n"
        " rename(*paths)\n"
        " os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.rename = rename\n"
        "with atomic_path('run.d') as new: new.mkdir()",
    )
    assert not (tmp_path / "run.d").exists()

    clear_unfinished(tmp_path)

    assert names(tmp_path) == ["good", "run.d"]


def test_only_leavings_are_cleared(tmp_path):
    for name in (".git", ".a.unfinished", "b.unfinished"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    with atomic_path(tmp_path / "now") as new:
        new.write_text("being written")
        clear_unfinished(tmp_path)
        assert new.read_text() == "being written"
    clear_unfinished(tmp_path / "missing")

    assert {".git", "b.unfinished", "now"} <= set(names(tmp_path))


@pytest.mark.parametrize("name", [".", "file"])
def test_a_lock_is_held_once_and_ends_with_its_process(tmp_path, name):
    (tmp_path / "file").touch()
    with locked(tmp_path / name) as first, locked(tmp_path / name) as second:
        assert (first, second) == (True, False)
    run_until_killed(
        tmp_path,
        f"with locked('{name}') as held:\n assert held\n os.kill(os.getpid(), signal.SIGKILL)",
    )
    with locked(tmp_path / name) as again:
        assert again is True


def test_locking_a_missing_file_creates_nothing(tmp_path):
    with pytest.raises(FileNotFoundError), locked(tmp_path / "file"):
        pass
    assert names(tmp_path) == []
