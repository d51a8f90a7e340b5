"""Failed writes are reported, and the old file stays."""

import errno
import os
import resource
import shutil
import tempfile

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path, make_folder, write_text
from bert_tf.io.files import read_text
from bert_tf.io.refusals import explained
from bert_tf.io.resumable import resumable_file


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_bytes(b"x" * 100_000),
        lambda path: np.save(path, np.zeros(100_000)),
        lambda path: tf.io.write_file(str(path), "x" * 100_000),
    ],
    ids=["Python", "NumPy", "TensorFlow"],
)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's device that is full")
def test_a_full_disk_is_reported_and_the_old_file_stays(tmp_path, write):
    write_text(tmp_path / "a.npy", "old")
    with pytest.raises(UserError, match="the disk is full"), atomic_path(tmp_path / "a.npy") as new:
        new.symlink_to("/dev/full")
        write(new)

    assert read_text(tmp_path / "a.npy") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_a_limit_on_the_size_of_files_is_reported_as_a_full_disk(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(UserError, match="the disk is full"):
            write_text(tmp_path / "a", "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("inside", ["file/a", "file/folder/a", "x" * 300])
def test_a_place_that_cannot_be_written_is_reported(tmp_path, inside):
    (tmp_path / "file").touch()

    with pytest.raises(UserError, match="cannot write .*; choose another place"):
        write_text(tmp_path / inside, "x")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux's /proc")
def test_a_file_system_that_takes_no_files_is_reported():
    with pytest.raises(UserError, match="cannot write /proc/bert_tf"):
        write_text("/proc/bert_tf/run", "x")
    with pytest.raises(UserError, match="cannot write /proc/bert_tf"):
        make_folder("/proc/bert_tf")


def test_other_errors_of_the_writer_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError), explained(tmp_path):
        (tmp_path / "missing").read_text()
    with pytest.raises(UserError, match="^the vocabulary is wrong$"), explained(tmp_path):
        raise UserError("the vocabulary is wrong")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENAMETOOLONG, errno.EDQUOT])
@pytest.mark.parametrize("write", [lambda path: write_text(path, "x"), lambda p: opened(p)])
def test_a_temporary_file_that_cannot_be_made_is_reported_by_its_final_name(
    tmp_path, monkeypatch, write, number
):
    """Root may write everywhere, so the system's answer is given here."""

    def refuse(path, *_, **__):
        raise OSError(number, os.strerror(number), os.path.join(tmp_path, os.path.basename(path)))

    monkeypatch.setattr(tempfile, "mkdtemp", lambda end, begin, folder: refuse(begin + "x" + end))
    monkeypatch.setattr(type(tmp_path), "touch", refuse)
    reason = "the disk is full while writing" if number == errno.EDQUOT else "cannot write"
    with pytest.raises(UserError, match=f"{reason} {tmp_path}/a.npy.*; (choose|free)"):
        write(tmp_path / "a.npy")


def opened(path):
    with resumable_file(path, {}):
        pass


def test_a_folder_of_temporary_files_that_is_full_or_read_only_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    told = f"the folder of temporary files is full: {tmp_path}/temporary; .*TMPDIR"
    with pytest.raises(UserError, match=told), explained():
        raise OSError(errno.ENOSPC, "No space left on device")
    refused = OSError(errno.EROFS, "Read-only file system", str(tmp_path / "temporary" / "tmp1"))
    for path in (None, tmp_path / "out"):
        told = "temporary files cannot be written to .*TMPDIR"
        with pytest.raises(UserError, match=told), explained(path):
            raise refused


def test_a_file_that_tensorflow_has_cut_is_reported_as_a_full_disk(tmp_path, monkeypatch):
    """Some of its writers do not notice that the disk is full; its readers then do."""
    cut = tf.errors.OutOfRangeError(None, None, "Read less bytes than requested")
    with pytest.raises(tf.errors.OutOfRangeError), atomic_path(tmp_path / "a"):
        raise cut
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, 0))
    told = "the disk is full while writing"
    with pytest.raises(UserError, match=told), atomic_path(tmp_path / "a"):
        raise cut
    with pytest.raises(UserError, match="the folder of temporary files is full"), explained():
        raise cut
