"""Files: what is written appears whole or not at all; what cannot be read or written is told."""

import errno
import gzip
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.files import (
    atomic_path,
    clear_unfinished,
    explained,
    is_stream,
    locked,
    make_folder,
    open_maybe_gzipped,
    read_text,
    remove_folder,
    write_text,
)

ROOT = Path(__file__).resolve().parents[1]


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_text_reads_back_as_written(tmp_path):
    write_text(tmp_path / "new" / "a.txt", "naïve\r\n\u2028日本")

    assert read_text(tmp_path / "new" / "a.txt") == "naïve\r\n\u2028日本"
    assert names(tmp_path) == ["a.txt", "new"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_is_unpacked_if_it_is_gzipped(tmp_path, pack):
    (tmp_path / "a").write_bytes(pack(b"one\ntwo\n"))

    with open_maybe_gzipped(tmp_path / "a") as (content, file):
        assert list(content) == [b"one\n", b"two\n"]
        assert file.tell() == (tmp_path / "a").stat().st_size


def test_a_file_that_cannot_be_unpacked_or_opened_is_named(tmp_path):
    (tmp_path / "cut").write_bytes(gzip.compress(b"cut short" * 99)[:-9])
    for name, message in [
        ("cut", "corpus file is broken gzip: .*cut"),
        ("none", "corpus file cannot be read: .*none .No such file"),
        ("", "corpus file cannot be read: "),
    ]:
        with (
            pytest.raises(UserError, match=message),
            open_maybe_gzipped(tmp_path / name, "corpus file") as (content, _),
        ):
            content.read()


def test_a_file_replaces_a_file(tmp_path):
    write_text(tmp_path / "a", "old")
    write_text(tmp_path / "a", "new")

    assert read_text(tmp_path / "a") == "new"
    assert names(tmp_path) == ["a"]


def test_a_folder_replaces_a_folder_with_all_that_was_in_it(tmp_path):
    for name in ("first", "second"):
        with atomic_path(tmp_path / "run") as new:
            (new / "deep").mkdir(parents=True)
            (new / "deep" / name).write_text(name)

    assert names(tmp_path) == ["deep", "run", "second"]


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

    with pytest.raises(UserError, match="cannot write .*pipe; it is a device or a pipe; name a"):
        write_text(tmp_path / "pipe", "x")
    assert (tmp_path / "pipe").is_fifo() and names(tmp_path) == ["pipe"]


def test_streams_are_told_from_files_and_folders(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")

    assert is_stream(tmp_path / "pipe") and is_stream(os.devnull)
    for name in ("file", ".", "missing", "x" * 300, "file/inside"):
        assert not is_stream(tmp_path / name)


def write_with_python(path):
    path.write_bytes(b"x" * 100_000)


def write_with_numpy(path):
    np.save(path, np.zeros(100_000))


def write_with_tensorflow(path):
    tf.io.write_file(str(path), "x" * 100_000)


@pytest.mark.parametrize("write", [write_with_python, write_with_numpy, write_with_tensorflow])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's device that is full")
def test_a_full_disk_is_told_and_the_old_file_stays(tmp_path, write):
    write_text(tmp_path / "a.npy", "old")
    with pytest.raises(UserError, match="the disk is full"), atomic_path(tmp_path / "a.npy") as new:
        new.symlink_to("/dev/full")
        write(new)

    assert read_text(tmp_path / "a.npy") == "old"
    assert names(tmp_path) == ["a.npy"]


def test_a_limit_on_the_size_of_files_is_told_as_a_full_disk(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(UserError, match="the disk is full"):
            write_text(tmp_path / "a", "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert names(tmp_path) == []


@pytest.mark.parametrize("inside", ["file/a", "file/folder/a", "x" * 300])
def test_a_place_that_cannot_be_written_is_told(tmp_path, inside):
    (tmp_path / "file").touch()

    with pytest.raises(UserError, match="cannot write .*; choose another place"):
        write_text(tmp_path / inside, "x")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux's /proc")
def test_a_file_system_that_takes_no_files_is_told():
    with pytest.raises(UserError, match="cannot write /proc/bert_tf"):
        write_text("/proc/bert_tf/run", "x")
    with pytest.raises(UserError, match="cannot write /proc/bert_tf"):
        make_folder("/proc/bert_tf")


def test_a_folder_is_made_once_with_those_above_it(tmp_path):
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")

    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write .*file"):
        make_folder(tmp_path / "file")


def test_a_file_does_not_replace_a_folder(tmp_path):
    (tmp_path / "run").mkdir()

    with pytest.raises(UserError, match="Is a directory"):
        write_text(tmp_path / "run", "x")


@pytest.mark.parametrize("path", [".", "..", "/", "runs/.."])
def test_a_path_without_a_name_of_its_own_is_refused(path):
    with pytest.raises(UserError, match="cannot write"), atomic_path(path):
        pytest.fail("nothing may be written there")


def test_other_errors_of_the_writer_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError), explained(tmp_path):
        (tmp_path / "missing").read_text()
    with pytest.raises(UserError, match="^the vocabulary is wrong$"), explained(tmp_path):
        raise UserError("the vocabulary is wrong")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "vocabulary is empty: .*a.txt"),
        (b"one\ntwo \xff\n", r"vocabulary is not UTF-8: .*a.txt, line 2, byte 8 \(0xff\)"),
        ("wörd\n".encode("latin-1"), "line 1, byte 1"),
        ("text".encode("utf-16"), "line 1, byte 0"),
    ],
)
def test_a_file_that_is_no_text_is_told_with_the_place(tmp_path, content, message):
    (tmp_path / "a.txt").write_bytes(content)

    with pytest.raises(UserError, match=message):
        read_text(tmp_path / "a.txt", "vocabulary")


def test_a_file_that_is_missing_or_a_folder_is_told(tmp_path):
    with pytest.raises(UserError, match="vocabulary not found: .*a.txt"):
        read_text(tmp_path / "a.txt", "vocabulary")
    with pytest.raises(UserError, match="vocabulary cannot be read: .*Is a directory"):
        read_text(tmp_path, "vocabulary")


def run_until_killed(folder, code):
    """Runs `code` in `folder`, in a process that ends itself by SIGKILL."""
    begin = (
        "import os, signal\nfrom bert_tf.files import atomic_path, locked\n"
        f"os.chdir({str(folder)!r})\n"
    )
    process = subprocess.run([sys.executable, "-c", begin + code], cwd=ROOT)
    assert process.returncode == -signal.SIGKILL


def test_what_a_killed_process_left_is_cleared(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    run_until_killed(
        tmp_path,
        "with atomic_path('a.txt') as file, atomic_path('run') as folder:\n"
        " file.write_text('half'); (folder / 'deep').mkdir(parents=True)\n"
        " os.kill(os.getpid(), signal.SIGKILL)",
    )
    assert len(list(tmp_path.iterdir())) == 3

    clear_unfinished(tmp_path)

    assert names(tmp_path) == ["a.txt"]
    assert read_text(tmp_path / "a.txt") == "old"


def test_what_a_killed_process_left_of_a_file_goes_when_that_is_written_again(tmp_path):
    run_until_killed(
        tmp_path,
        "with atomic_path('a.txt') as file, atomic_path('run') as folder:\n"
        " file.write_text('half'); (folder / 'deep').mkdir(parents=True)\n"
        " os.kill(os.getpid(), signal.SIGKILL)",
    )
    assert len(list(tmp_path.iterdir())) == 2

    write_text(tmp_path / "a.txt", "new")
    (of_other,) = tmp_path.glob(".*")
    assert of_other.name.startswith(".run.") and read_text(tmp_path / "a.txt") == "new"
    with atomic_path(tmp_path / "run") as new:
        new.mkdir()

    assert names(tmp_path) == ["a.txt", "run"]


def test_what_is_being_written_under_the_same_name_stays(tmp_path):
    with atomic_path(tmp_path / "a") as first:
        first.write_text("first")
        write_text(tmp_path / "a", "second")
        assert read_text(tmp_path / "a") == "second"

    assert read_text(tmp_path / "a") == "first"
    assert names(tmp_path) == ["a"]


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


def test_a_lock_on_nothing_makes_nothing(tmp_path):
    with pytest.raises(FileNotFoundError), locked(tmp_path / "file"):
        pass
    assert names(tmp_path) == []
