"""Rows of TSV, CSV and JSON-lines files with named columns."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_tf.console import logger
from bert_tf.data import arrow
from bert_tf.errors import UserError
from bert_tf.io.files import ending
from bert_tf.io.json_files import KINDS, read_json_lines, text_of, whole_text, whole_value

FORMATS = ("tsv", "csv", "jsonl")
Row = dict[str, str]

# The csv module refuses longer fields; its own limit is 131,072 characters.
_LONGEST_FIELD = 2**31 - 1

# A text with quotation marks, as CSV writes it.
_QUOTED = re.compile('"(?:[^"]|"")*""(?:[^"]|"")*"')

# The remedy for a row with too few or too many fields.
_MENDING = {
    "tsv": "TSV has no quoting: write texts that hold tabs or line breaks as csv or jsonl",
    "csv": "put texts that hold commas or line breaks in quotation marks",
}


def read_table(
    path: Path,
    file_format: str,
    columns: Sequence[str],
    optional: Sequence[str] = (),
    targets: Sequence[str] = (),
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The named columns of every row, with the number of the line on which the row ends.

    TSV has a header and no quoting (a quotation mark is text). CSV has a header and the usual
    quoting. JSON lines are objects; their numbers and booleans become texts as Python's JSON writes
    them, and whole numbers have no decimal point: 1.50 is 1.5, 1.0 is 1, and 1e2 is 100. Columns
    that are `optional` are read from the rows that have them; null counts as missing. The values of
    `targets` stay what they are in JSON.
    """
    if file_format == "jsonl":
        rows: Iterator[tuple[int, dict[str, Any]]] = read_json_lines(path)
    else:
        text = text_of(path).rstrip("\r\n")
        if file_format == "tsv":
            _warn_of_quoting(path, text)
        lines = _tsv_lines(text) if file_format == "tsv" else _csv_lines(path, text)
        rows = _named(path, lines, (*columns, *optional), _MENDING[file_format])
    for number, row in rows:
        for column in columns:
            if column not in row:
                there = ", ".join(map(repr, row))
                raise UserError(
                    f"{path}, line {number}: no column {column!r}; the columns are {there}"
                )
        values: dict[str, Any] = {}
        for column in (*columns, *(each for each in optional if row.get(each) is not None)):
            if column in targets:
                values[column] = whole_value(row[column])
            else:
                values[column] = as_text(row[column], f"{path}, line {number}, {column}")
        yield number, values


def rows_of(path: Path, file_format: str) -> tuple[str, Iterable[tuple[int, dict[str, Any]]]]:
    """The unit "line" or "row", and the rows of JSON lines or Arrow with their numbers in it."""
    if not arrow.reads(path, file_format):
        return "line", read_json_lines(path)
    table = arrow.read(path)
    return "row", table.rows(table.names, lambda number, row: (number, row))


def format_of(path: Path, configured: str, own: Iterable[Path]) -> str:
    """The ending of `path` if it is in `FORMATS`; `configured` for other and for `own` files."""
    found, is_own = ending(path), path.resolve() in {each.resolve() for each in own}
    return found if found in FORMATS and not is_own else configured


def read_tsv(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The fields of every line that is not empty, with the line's number; there is no quoting. If
    the first line has only one field, an empty line between others is an empty text. Only a line
    feed ends a line, since texts hold other characters that Unicode counts as line ends.
    """
    return _tsv_lines(text_of(path).rstrip("\r\n"))


def _tsv_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    columns = 0
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if line or columns == 1:
            fields = line.split("\t")
            columns = columns or len(fields)
            yield number, fields


def _csv_lines(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """The fields of every row, with the number of the line on which it ends."""
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns = 0
    try:
        for fields in reader:
            if fields or columns == 1:
                columns = columns or len(fields)
                yield reader.line_num, fields or [""]
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: {error}") from None


def _warn_of_quoting(path: Path, text: str) -> None:
    """Warns if a TSV file looks quoted as in CSV: a text with quotation marks is between two more,
    and its own are doubled.
    """
    if '"' not in text:
        return
    quoted = [line for line, fields in _tsv_lines(text) if any(map(_QUOTED.fullmatch, fields))]
    if quoted:
        logger.warning(
            f"{path}: fields of {len(quoted)} rows, the first in line {quoted[0]}, look quoted as "
            "in CSV; TSV has no quoting, so their quotation marks are read as text. If they are "
            "not part of the text, use csv or jsonl"
        )


def _named(
    path: Path, lines: Iterator[tuple[int, list[str]]], columns: Sequence[str], mending: str
) -> Iterator[tuple[int, Row]]:
    """The rows after the header, by its names. It may name each of `columns` only once."""
    header: list[str] = []
    for number, fields in lines:
        if not header:
            header = fields
            for name in columns:
                if header.count(name) > 1:
                    raise UserError(
                        f"{path}, line {number}: two columns are named {name!r}; rename one of them"
                    )
        elif len(fields) != len(header):
            raise UserError(
                f"{path}, line {number}: {len(fields)} fields, but the header has {len(header)}; "
                f"{mending}"
            )
        else:
            yield number, dict(zip(header, fields, strict=True))


def as_text(value: Any, place: str) -> str:
    """A text as it is, and a number or boolean as JSON writes it; 1.0 and 1 are the same text."""
    if isinstance(value, str):
        return whole_text(value)
    if value is None or isinstance(value, list | dict):
        found = "null" if value is None else KINDS[type(value)]
        raise UserError(f"{place}: expected a text or a number, got {found}")
    # Pandas writes the same labels as 1.0 where others are missing, and as 1 where none is.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)
