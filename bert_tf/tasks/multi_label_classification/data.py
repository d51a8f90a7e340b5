"""Files of texts, or pairs of texts, with any number of labels for each."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.data.columns import Columns, TextColumn
from bert_tf.data.targets import Labels
from bert_tf.errors import UserError
from bert_tf.tasks.multi_label_classification import MultiLabelData
from bert_tf.tasks.texts.text_files import format_of, read_table

# How a column of a table says that a row has its label, or has not.
_YES, _NO = ("1", "true", "True", 1), ("0", "false", "False", 0)


def read(path: Path, data: MultiLabelData, needs_labels: bool) -> Columns:
    r"""The rows of a file.

    >>> from bert_tf.tasks.multi_label_classification import MultiLabelData
    >>> _ = Path("train.tsv").write_text("text\tlabel\nlate and cold\tlate,cold\nlovely\t\n")
    >>> read(Path("train.tsv"), MultiLabelData(path=".", format="tsv"), True).targets
    [('late', 'cold'), ()]

    Args:
        path: the file.
        data: its format and columns.
        needs_labels: whether it is a mistake if there are no labels.

    Raises:
        UserError: the file cannot be used; the message names the mistake and its place.
    """
    columns, is_table = data.label_columns, format_of(path, data) != "jsonl"

    def labels(row: Mapping[str, Any], place: str) -> Any:
        if columns is not None:
            return _of_columns(row, columns, place)
        found = row.get(data.label_column)
        if is_table and isinstance(found, str):
            return _of_joined(found, place, data.label_separator)
        return found

    texts = data.text_columns or ("text",)
    rows = read_table(path, data, texts, columns or (data.label_column,), needs_labels, labels)
    rows = dataclasses.replace(rows, classes=columns or ())
    return rows.checked(map(TextColumn, rows.names), Labels(columns or ()))


def _of_columns(row: Mapping[str, Any], labels: Sequence[str], place: str) -> list[str] | None:
    """The labels of a row that has a column of 0 and 1 for each label."""
    there = [name for name in labels if name in row]
    if there and len(there) < len(labels):
        missing = next(name for name in labels if name not in row)
        raise UserError(f"{place}: no column {missing!r}")
    for name in there:
        if row[name] not in (*_YES, *_NO):
            raise UserError(f"{place}: the column {name} contains {row[name]!r}; write 0 or 1")
    return [name for name in there if row[name] in _YES] if there else None


def _of_joined(joined: str, place: str, separator: str) -> list[str]:
    """The labels in one text; an empty text means no label."""
    names = [each.strip() for each in joined.split(separator)] if joined.strip() else []
    if "" in names:
        raise UserError(f"{place}: one of the labels is empty; remove it")
    return names
