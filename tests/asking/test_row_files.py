"""Inputs are read from lines of any kind, and bad lines are reported."""

import gzip
import json
import os
import threading

import pytest

from bert_tf.asking.row_files import checked_lines, read_blocks
from bert_tf.errors import UserError

TEXT = {"text": 1}
CHOICES = {"context": 1, "choices": 2}


def read(path, ranks) -> list[dict]:
    return [row for rows, _ in read_blocks(str(path), ranks) for row in rows]


def test_plain_lines_are_texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes("\ufeffone\r\n\n[3]\u2028 ".encode())
    assert read(path, TEXT) == [{"text": "one"}, {"text": ""}, {"text": "[3]\u2028 "}]
    assert checked_lines(str(path), TEXT) == 3


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", ["rows.jsonl", "rows"])
def test_json_lines_are_found_by_name_or_by_the_first_line(tmp_path, name, mark):
    path = tmp_path / name
    path.write_text(f'{mark}{{"text": "one", "other": 1}}\n\n{{"text": "two"}}\n')
    assert read(path, TEXT) == [{"text": "one"}, {"text": "two"}]
    path.write_text(f'{mark}\n \n{{"text": "one"}}\n')
    assert read(path, TEXT) == [{"text": "one"}]


@pytest.mark.parametrize(
    ("name", "content", "ranks", "message"),
    [
        ("a.txt", b"", TEXT, "input is empty: .*a.txt"),
        (
            "a.csv",
            b"text\na\n",
            TEXT,
            "a.csv is a table; give a file with one text per line, or JSON",
        ),
        ("a.jsonl", "\ufeff".encode(), TEXT, "input is empty: .*a.jsonl"),
        ("a.txt", b"one\ntwo \xff\n", TEXT, r"a.txt, line 2, byte 4 \(0xff\) is not UTF-8"),
        ("a.txt", "one".encode("utf-16"), TEXT, r"a.txt, line 1, byte 0 \(0xff\) is not UTF-8"),
        ("a.jsonl", b"one\n", TEXT, r"line 1: not JSON \(Expecting value\)"),
        ("a.txt", b"one\n", CHOICES, r"line 1: not JSON \(Expecting value\)"),
        ("a.jsonl", b"[" * 100_000, TEXT, "line 1: not JSON"),
        ("a.jsonl", b'{"text": "a"}\n["text"]\n', TEXT, "line 2: not a JSON object with text"),
        ("a.jsonl", b'{"text": "a", "text": "b"}', TEXT, "line 1: not JSON .an object has the key"),
        ("a.jsonl", b'{"text": ["a"]}\n', TEXT, "line 1: no text under 'text'"),
        ("a.jsonl", b'{"text": "a"}\n{}\n', TEXT, "line 2: no text under 'text'"),
        ("a.jsonl", b'{"context": "a", "choices": "b"}', CHOICES, "no list of texts under 'cho"),
        ("a.jsonl", b'{"context": "a", "choices": [1]}', CHOICES, "no list of texts under 'cho"),
    ],
)
def test_bad_lines_are_reported_in_one_line(tmp_path, name, content, ranks, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        checked_lines(str(tmp_path / name), ranks)
    with pytest.raises(UserError, match=message) as error:
        read(tmp_path / name, ranks)
    assert name in str(error.value) and "\n" not in str(error.value)


def test_gzipped_lines_are_read_as_plain_ones(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"text": "one"}\n'))
    assert checked_lines(str(tmp_path / "a.jsonl.gz"), TEXT) == 1
    assert read(tmp_path / "a.jsonl.gz", TEXT) == [{"text": "one"}]
    with pytest.raises(UserError, match="b.csv.gz is a table"):
        read(tmp_path / "b.csv.gz", TEXT)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"one " * 99)[:-9])
    with pytest.raises(UserError, match="input is damaged gzip data: .*cut.gz"):
        read(tmp_path / "cut.gz", TEXT)


def test_an_input_that_cannot_be_opened_is_reported(tmp_path):
    with pytest.raises(UserError, match="input not found: .*missing"):
        read(tmp_path / "missing", TEXT)
    with pytest.raises(UserError, match="input cannot be read: .*Is a directory"):
        read(tmp_path, TEXT)


def test_a_pipe_with_a_name_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=[json.dumps({"text": "one"})])
    writer.start()
    assert checked_lines(str(pipe), TEXT) is None
    assert read(pipe, TEXT) == [{"text": "one"}]
    writer.join()
