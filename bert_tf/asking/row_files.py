"""Input texts, read from a file or a pipe as they are needed."""

import codecs
import contextlib
import io
import itertools
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from bert_tf.errors import UserError
from bert_tf.io.files import ending, lines_of, open_maybe_gzipped, readable
from bert_tf.io.json_files import object_of
from bert_tf.io.remote import fetched

Row = dict[str, str | list[str]]

# The most lines and bytes that are read before they are answered.
_BLOCK_LINES = 10_000
_BLOCK_BYTES = 2**26


def text_of(row: Row, name: str) -> str:
    """An input of a row that is one text."""
    value = row[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is a list of texts, not one text")
    return value


def list_of(row: Row, name: str) -> list[str]:
    """An input of a row that is a list of texts."""
    value = row[name]
    if isinstance(value, str):
        raise TypeError(f"{name} is one text, not a list of texts")
    return value


# Consecutive rows, and the number of lines read so far.
Block = tuple[list[Row], int]


def checked_lines(path: str, ranks: Mapping[str, int]) -> int | None:
    """The number of lines of a file, all of which are checked; None if it is read only once."""
    if path == "-" or not os.path.isfile(fetched(path, is_file=True)):
        return None
    return max((last_line for _, last_line in read_blocks(path, ranks)), default=0)


def read_blocks(path: str, ranks: Mapping[str, int]) -> Iterator[Block]:
    """The rows of a file, or with path "-" of standard input, in blocks.

    Lines are JSON objects, or, where the only input is one text, plain text. They are taken for
    JSON if the file is called .jsonl or .json or if the first line that is not blank is a JSON
    object. `ranks` is as in `Answers.ranks`.
    """
    if ending(path) in ("csv", "tsv"):
        raise UserError(
            f"{path} is a table; give a file with one text per line, or JSON lines with "
            f"{' and '.join(ranks)}"
        )
    with _opened(path) as handle:
        lines = lines_of(handle, path)
        # The lines up to the first that is not blank, without a byte order mark.
        opening: list[bytes] = []
        for line in lines:
            opening.append(line if opening else line.removeprefix(codecs.BOM_UTF8))
            if opening[-1].strip():
                break
        if not any(opening) and path != "-":
            raise UserError(f"input is empty: {path}")
        is_plain = list(ranks.values()) == [1] and not _is_json(path, b"".join(opening))
        rows: list[Row] = []
        size = number = 0
        for number, line in enumerate(itertools.chain(opening, lines), start=1):
            text = _text(path, number, line)
            if is_plain:
                rows.append({next(iter(ranks)): text})
            elif text.strip():
                rows.append(_row(path, number, text, ranks))
            size += len(line)
            if len(rows) == _BLOCK_LINES or size >= _BLOCK_BYTES:
                yield rows, number
                rows, size = [], 0
        if rows:
            yield rows, number


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO | io.BufferedIOBase]:
    if path == "-":
        yield sys.stdin.buffer
    elif (source := fetched(path, is_file=True)).exists() and not source.is_file():
        with readable(path, "input"), open(source, "rb") as pipe:
            yield pipe
    else:
        with open_maybe_gzipped(path, "input") as (content, _):
            yield content


def _is_json(path: str, line: bytes) -> bool:
    if ending(path) in ("jsonl", "json"):
        return True
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _text(path: str, number: int, line: bytes) -> str:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, line {number}, byte {error.start} (0x{line[error.start]:02x}) is not UTF-8; "
            "convert the file to UTF-8"
        ) from None


def misfit(row: Mapping[str, Any], ranks: Mapping[str, int]) -> str | None:
    """The first input that a row lacks, or has in another form than `ranks` says; or None."""
    for name, rank in ranks.items():
        texts = [row.get(name)] if rank == 1 else row.get(name)
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            return name
    return None


def _row(path: str, number: int, line: str, ranks: Mapping[str, int]) -> Row:
    """The inputs in a JSON line; other keys are ignored."""
    try:
        row = json.loads(line, object_pairs_hook=object_of)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", error)
        raise UserError(f"{path}, line {number}: not JSON ({reason})") from None
    if not isinstance(row, dict):
        raise UserError(f"{path}, line {number}: not a JSON object with {' and '.join(ranks)}")
    if (name := misfit(row, ranks)) is not None:
        kind = "text" if ranks[name] == 1 else "list of texts"
        raise UserError(f"{path}, line {number}: no {kind} under {name!r}")
    return {name: row[name] for name in ranks}
