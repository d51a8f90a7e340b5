"""Files that cannot be read are reported with their place."""

import gzip
import os
import socket

import pytest

from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.io.files import checksum, is_there, lines_of, open_maybe_gzipped, read_text
from bert_tf.io.vocabulary import read_vocabulary


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_is_unpacked_if_it_is_gzipped(tmp_path, pack):
    (tmp_path / "a").write_bytes(pack(b"one\ntwo\n"))

    with open_maybe_gzipped(tmp_path / "a") as (content, file):
        assert list(content) == [b"one\n", b"two\n"]
        assert file.tell() == (tmp_path / "a").stat().st_size


def test_a_file_that_cannot_be_unpacked_or_opened_is_named(tmp_path):
    (tmp_path / "cut").write_bytes(gzip.compress(b"cut short" * 99)[:-9])
    for name, message in [
        ("cut", "corpus file is damaged gzip data: .*cut"),
        ("none", "corpus file not found: .*none"),
        ("", "corpus file is a folder, not a file: "),
    ]:
        with (
            pytest.raises(UserError, match=message),
            open_maybe_gzipped(tmp_path / name, "corpus file") as (content, _),
        ):
            content.read()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "vocabulary is empty: .*a.txt"),
        (b"one\ntwo \xff\n", r"vocabulary is not UTF-8: .*a.txt, line 2, byte 8 \(0xff\)"),
        ("wörd\n".encode("latin-1"), "line 1, byte 1"),
        ("text".encode("utf-16"), "line 1, byte 0"),
    ],
)
def test_a_file_that_is_no_text_is_reported_with_the_place(tmp_path, content, message):
    (tmp_path / "a.txt").write_bytes(content)

    with pytest.raises(UserError, match=message):
        read_text(tmp_path / "a.txt", "vocabulary")


def test_a_gzipped_text_is_unpacked_up_to_the_bytes_that_are_allowed(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a" * 1000))

    assert read_text(tmp_path / "a.gz", most=1000) == "a" * 1000
    with pytest.raises(UserError, match="file has more than the 999 bytes allowed, unpacked: "):
        read_text(tmp_path / "a.gz", most=999)


def test_a_file_that_is_missing_or_a_folder_is_reported(tmp_path):
    with pytest.raises(UserError, match="vocabulary not found: .*a.txt"):
        read_text(tmp_path / "a.txt", "vocabulary")
    with pytest.raises(UserError, match="vocabulary is a folder, not a file: "):
        read_text(tmp_path, "vocabulary")


@pytest.fixture(params=["pipe", "socket", "device", "link to nothing", "folder"])
def special(request, tmp_path):
    """A path at which there is no file."""
    path = tmp_path / "special"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "socket":
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(str(path))
    elif request.param == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if request.param == "device" else tmp_path / "nothing")
    return path


def test_what_is_no_file_is_refused_before_it_is_opened(special):
    for read in (is_there, read_text, checksum, read_vocabulary, load_config):
        with pytest.raises(UserError, match="is a .*, not a file: .*special"):
            read(special)
    with (
        pytest.raises(UserError, match="is a .*, not a file: .*special"),
        open_maybe_gzipped(special),
    ):
        pass


def test_there_is_a_file_or_a_link_to_one_or_nothing(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    names = ("file", "link", "missing", "file/below", "a\0b")
    assert [is_there(tmp_path / name) for name in names] == [True, True, False, False, False]


def test_nothing_is_read_beyond_a_size(tmp_path):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(2**28 + 1)
    for read, most in ((read_text, 2**28), (read_vocabulary, 2**24)):
        with pytest.raises(UserError, match=f"more than the {most:,} bytes allowed: .*large"):
            read(tmp_path / "large")
    with (
        pytest.raises(UserError, match="/dev/zero has a line of more than 67,108,864 bytes"),
        open("/dev/zero", "rb") as endless,
    ):
        next(lines_of(endless, "/dev/zero"))
