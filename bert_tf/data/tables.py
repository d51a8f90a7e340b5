"""Rows of TSV, CSV and JSON-lines files with named columns."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

from bert_tf.errors import UserError
from bert_tf.files import read_text

FORMATS = ("tsv", "csv", "jsonl")
Row = dict[str, str]


def read_table(path: Path, file_format: str, columns: tuple[str, ...]) -> Iterator[tuple[int, Row]]:
    """The named columns of every row, with the number of the line that the row ends on.

    TSV has a header and no quoting (a quotation mark is text); CSV has a header and the usual
    quoting; JSON lines are objects, whose numbers and booleans are taken as they are written.

    Raises:
        UserError: an unknown format, a missing column, a row with too few or too many fields,
            broken JSON; with file and line.
    """
    if file_format not in FORMATS:
        raise UserError(f"unknown data.format {file_format!r}; choose one of {', '.join(FORMATS)}")
    lines = read_text(path, "data").removeprefix("\ufeff").splitlines(keepends=True)
    rows = _json_rows(path, lines) if file_format == "jsonl" else _rows(path, lines, file_format)
    for number, row in rows:
        for column in columns:
            if column not in row:
                raise UserError(
                    f"{path}, line {number}: no column {column!r}; there are {', '.join(row)}"
                )
        yield number, {column: row[column] for column in columns}


def _rows(path: Path, lines: list[str], file_format: str) -> Iterator[tuple[int, Row]]:
    dialect = (
        {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if file_format == "tsv" else {"strict": True}
    )
    reader = csv.reader(lines, **dialect)
    try:
        header = next(reader)
        for fields in reader:
            if not fields:
                continue
            if len(fields) != len(header):
                raise UserError(
                    f"{path}, line {reader.line_num}: {len(fields)} fields, but the header has "
                    f"{len(header)}"
                )
            yield reader.line_num, dict(zip(header, fields, strict=True))
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: {error}") from None


def _json_rows(path: Path, lines: list[str]) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(
                f"{path}, line {number}, column {error.colno}: not JSON ({error.msg})"
            ) from None
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number}: expected an object with named values")
        yield number, {k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()}
