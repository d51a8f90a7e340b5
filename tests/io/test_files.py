"""What cannot be read is told with its place."""

import gzip

import pytest

from bert_tf.errors import UserError
from bert_tf.io.files import open_maybe_gzipped, read_text


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
        ("none", "corpus file cannot be read: .*none .No such file"),
        ("", "corpus file cannot be read: "),
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
def test_a_file_that_is_no_text_is_told_with_the_place(tmp_path, content, message):
    (tmp_path / "a.txt").write_bytes(content)

    with pytest.raises(UserError, match=message):
        read_text(tmp_path / "a.txt", "vocabulary")


def test_a_file_that_is_missing_or_a_folder_is_told(tmp_path):
    with pytest.raises(UserError, match="vocabulary not found: .*a.txt"):
        read_text(tmp_path / "a.txt", "vocabulary")
    with pytest.raises(UserError, match="vocabulary cannot be read: .*Is a directory"):
        read_text(tmp_path, "vocabulary")
