"""A vocabulary file is read as the reference reads it, or refused with the line to mend."""

import pytest

from bert_tf.errors import UserError
from bert_tf.io.vocabulary import SPECIAL_TOKENS, check_vocabulary, file_text, read_vocabulary


def written(folder, content: str | bytes):
    path = folder / "vocab.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


SPECIAL = "\n".join(SPECIAL_TOKENS)


def test_each_line_is_a_piece(tmp_path):
    path = written(tmp_path, f"a\n{SPECIAL}\n##b\n")
    assert read_vocabulary(path) == ("a", *SPECIAL_TOKENS, "##b")


def test_the_last_line_needs_no_end_and_ends_may_be_those_of_windows(tmp_path):
    path = written(tmp_path, f"{SPECIAL}\na \nb".replace("\n", "\r\n"))
    assert read_vocabulary(path) == (*SPECIAL_TOKENS, "a", "b")


def test_only_line_feeds_end_lines(tmp_path):
    path = written(tmp_path, f"{SPECIAL}\n\u2028\n##\u2028\n\x85\nb\n")
    assert read_vocabulary(path)[5:] == ("\u2028", "##\u2028", "\x85", "b")


def test_pieces_are_written_as_they_are_read(tmp_path):
    # Published vocabularies have pieces that are, or begin with, spaces of other kinds.
    odd = ("\u2028", "\x85", "\u00a0", "\u3000a", "\x0bb\x0c", "a\rb", "a b", "##日本")
    pieces = check_vocabulary((*SPECIAL_TOKENS, *odd))
    assert read_vocabulary(written(tmp_path, file_text(pieces))) == pieces


@pytest.mark.parametrize("piece", ["a\nb", "a\n", " a", "a\t", "a\r", " "])
def test_a_piece_that_a_file_cannot_hold_is_refused(piece):
    with pytest.raises(UserError, match="vocabulary, piece 6: '.*' contains a line break, or begi"):
        check_vocabulary((*SPECIAL_TOKENS, piece))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "vocabulary is empty"),
        (f"{SPECIAL}\na\n\nb\n", "line 7 is blank"),
        (f"{SPECIAL}\na\nb\na\n", "line 8 repeats 'a' of line 6"),
        ("[PAD]\n[UNK]\n[CLS]\na\n", r"lacks \[SEP\], \[MASK\] \(lines 1 to 4 were read\)"),
        (f"\ufeff{SPECIAL}\n", "line 1 starts with a byte-order mark"),
        (SPECIAL.encode() + b"\na\n\xe9\n", "not UTF-8.*line 7"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused_with_its_line(tmp_path, content, message):
    path = written(tmp_path, content)
    with pytest.raises(UserError, match=message) as refusal:
        read_vocabulary(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)
