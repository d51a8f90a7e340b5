"""Texts, or pairs of texts, with any number of labels for each."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.data import tables
from bert_tf.errors import UserError
from bert_tf.io.json_files import read_json_lines
from bert_tf.tasks.multi_label_classification.config import MultiLabelData
from bert_tf.tasks.texts.labelled_texts import Texts, class_order

# How a column of a table says that a row has its label, or has not.
_YES, _NO = ("1", "true", "True"), ("0", "false", "False")

# The labels of a row; None if it has no place for them.
_Labels = tuple[str, ...] | None


@dataclasses.dataclass(frozen=True)
class MultiLabelTexts(Texts[tuple[str, ...]]):
    """Texts with the labels of each text; a text may have no label.

    >>> texts = ["late and cold", "lovely"]
    >>> rows = MultiLabelTexts("train.csv", (texts,), [("late", "cold"), ()], places=[2, 3])
    >>> rows.all_classes()
    ('cold', 'late')
    >>> rows.matrix(rows.all_classes()).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """

    def all_classes(self) -> tuple[str, ...]:
        """The classes that the format knows, or else the labels that occur, in order.

        Raises:
            UserError: no row has a label, or a label is empty.
        """
        if self.classes:
            return self.classes
        for row, names in enumerate(self.known_labels()):
            for name in names:
                if [name] != name.strip().splitlines():
                    raise UserError(
                        f"{self.where(row)}: the label {name!r} is empty, or has spaces around it "
                        "or a line break in it; correct it"
                    )
        found = {name for names in self.known_labels() for name in names}
        if not found:
            raise UserError(f"{self.source}: no row has a label; label some rows to train")
        return class_order(found)

    def matrix(self, classes: Sequence[str]) -> np.ndarray:
        """float32 [rows, classes]: 1 where a row has a label, else 0.

        Raises:
            UserError: a label that is not among the classes, or no labels at all.
        """
        index = {name: i for i, name in enumerate(classes)}
        found = np.zeros((len(self), len(classes)), np.float32)
        for row, names in enumerate(self.known_labels()):
            for name in names:
                found[row, self.class_at(row, name, index)] = 1.0
        return found


def read(path: Path, file_format: str, data: MultiLabelData, needs_labels: bool) -> MultiLabelTexts:
    r"""The rows of a file.

    >>> from bert_tf.tasks.multi_label_classification.config import MultiLabelData
    >>> _ = Path("train.tsv").write_text("text\tlabel\nlate and cold\tlate,cold\nlovely\t\n")
    >>> read(Path("train.tsv"), "tsv", MultiLabelData(path=".", format="tsv"), True).labels
    [('late', 'cold'), ()]

    Args:
        path: the file.
        file_format: one of `tables.FORMATS`.
        data: its columns.
        needs_labels: whether it is a mistake if there are no labels.

    Raises:
        UserError: the file cannot be used; the message names the mistake and its place.
    """
    texts = data.text_columns or ("text",)
    columns = data.label_columns or (data.label_column,)
    needed = (*texts, *columns) if needs_labels else texts
    has_lists = file_format == "jsonl" and data.label_columns is None
    rows, found = [], []
    for line, row in (
        _read_json(path, needed, texts)
        if has_lists
        else tables.read_table(path, file_format, needed, columns)
    ):
        place = f"{path}, line {line}"
        if data.label_columns is not None:
            names = _of_columns(row, columns, place)
        elif has_lists:
            names = _of_list(row.get(data.label_column), place, data.label_column)
        else:
            names = _of_joined(row.get(data.label_column), place, data.label_separator)
        rows.append((line, row))
        found.append(names)
    labels = [names for names in found if names is not None]
    if labels and len(labels) < len(rows):
        line, _ = rows[found.index(None)]
        raise UserError(
            f"{path}, line {line}: no labels, unlike other rows; label all rows or none"
        )
    return MultiLabelTexts(
        source=str(path),
        columns=tuple([row[column] for _, row in rows] for column in texts),
        labels=labels or None,
        places=[line for line, _ in rows],
        classes=data.label_columns or (),
        path=path,
    )


def _read_json(
    path: Path, needed: Sequence[str], texts: Sequence[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects with texts, and whatever their labels are."""
    for line, row in read_json_lines(path):
        place = f"{path}, line {line}"
        for name in needed:
            if name not in row:
                raise UserError(
                    f"{place}: no {name!r}; the columns are {', '.join(map(repr, row))}"
                )
        yield line, row | {name: tables.as_text(row[name], f"{place}, {name}") for name in texts}


def _of_columns(row: Mapping[str, str], labels: Sequence[str], place: str) -> _Labels:
    """The labels of a row that has a column of 0 and 1 for each label."""
    there = [name for name in labels if name in row]
    if there and len(there) < len(labels):
        missing = next(name for name in labels if name not in row)
        raise UserError(f"{place}: no column {missing!r}")
    for name in there:
        if row[name] not in (*_YES, *_NO):
            raise UserError(f"{place}: the column {name} contains {row[name]!r}; write 0 or 1")
    return tuple(name for name in there if row[name] in _YES) if there else None


def _of_joined(joined: str | None, place: str, separator: str) -> _Labels:
    """The labels in one text; an empty text means no label."""
    if joined is None:
        return None
    parts = joined.split(separator) if joined.strip() else []
    return _distinct([part.strip() for part in parts], place)


def _of_list(values: Any, place: str, column: str) -> _Labels:
    """The labels in a list of JSON."""
    if values is None:
        return None
    if not isinstance(values, list):
        raise UserError(
            f"{place}: {column} is not a list of labels; write [] for a text without labels"
        )
    return _distinct([tables.as_text(each, f"{place}, {column}") for each in values], place)


def _distinct(names: Sequence[str], place: str) -> tuple[str, ...]:
    """The labels of a row. Raises UserError if one is empty, or there twice."""
    for number, name in enumerate(names):
        if not name:
            raise UserError(f"{place}: one of the labels is empty; remove it")
        if name in names[:number]:
            raise UserError(f"{place}: the label {name!r} occurs twice; remove one")
    return tuple(names)
