"""Texts, or pairs of texts, with any number of labels for each."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from bert_tf.data import tables
from bert_tf.data.tables.json_files import read_json_lines
from bert_tf.errors import UserError
from bert_tf.tasks.multi_label_classification.config import MultiLabelData
from bert_tf.tasks.texts.labelled_texts import Texts, class_order

# How a column of a table says that a row has its label, or has not.
_YES, _NO = ("1", "true", "True"), ("0", "false", "False")
# Labels that a message lists.
_LISTED = 20

# A row: the number of its line, its texts, and its labels, or None if it has no place for them.
_Row = tuple[int, list[str], tuple[str, ...] | None]


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
                        f"{self.where(row)}: the label {name!r} is empty, or has blanks around it "
                        "or a line break in it; correct it"
                    )
        found = {name for names in self.known_labels() for name in names}
        if not found:
            raise UserError(f"{self.source}: no row has a label; there is nothing to learn")
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
                if name not in index:
                    known = ", ".join(classes[:_LISTED]) + ", …" * (len(classes) > _LISTED)
                    raise UserError(
                        f"{self.where(row)}: label {name!r} is unknown; there are {known}"
                    )
                found[row, index[name]] = 1.0
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
    if data.label_columns is not None:
        rows = list(_of_columns(path, file_format, texts, data.label_columns, needs_labels))
    elif file_format == "jsonl":
        rows = list(_of_lists(path, texts, data.label_column, needs_labels))
    else:
        rows = list(_of_joined(path, file_format, texts, data, needs_labels))
    labels = [names for _, _, names in rows if names is not None]
    if labels and len(labels) < len(rows):
        line = next(line for line, _, names in rows if names is None)
        raise UserError(f"{path}, line {line}: no labels, unlike other rows; label all or none")
    return MultiLabelTexts(
        source=str(path),
        columns=tuple([row[i] for _, row, _ in rows] for i in range(len(texts))),
        labels=labels or None,
        places=[line for line, _, _ in rows],
        classes=data.label_columns or (),
        path=path,
    )


def _of_columns(
    path: Path, file_format: str, texts: Sequence[str], labels: Sequence[str], needs_labels: bool
) -> Iterator[_Row]:
    """Rows that have a column of 0 and 1 for each label."""
    needed, optional = ((*texts, *labels), ()) if needs_labels else (texts, labels)
    for line, row in tables.read_table(path, file_format, needed, optional):
        there = [name for name in labels if name in row]
        if there and len(there) < len(labels):
            missing = next(name for name in labels if name not in row)
            raise UserError(f"{path}, line {line}: no column {missing!r}")
        for name in there:
            if row[name] not in (*_YES, *_NO):
                raise UserError(
                    f"{path}, line {line}: {row[name]!r} in the column {name}; write 0 or 1"
                )
        names = tuple(name for name in labels if row.get(name) in _YES)
        yield line, [row[name] for name in texts], names if there else None


def _of_joined(
    path: Path, file_format: str, texts: Sequence[str], data: MultiLabelData, needs_labels: bool
) -> Iterator[_Row]:
    """Rows whose labels are one text; an empty text means no label."""
    label = (data.label_column,)
    needed, optional = ((*texts, *label), ()) if needs_labels else (texts, label)
    for line, row in tables.read_table(path, file_format, needed, optional):
        joined = row.get(data.label_column)
        names = None
        if joined is not None:
            parts = joined.split(data.label_separator) if joined.strip() else []
            names = _distinct((part.strip() for part in parts), f"{path}, line {line}")
        yield line, [row[name] for name in texts], names


def _of_lists(path: Path, texts: Sequence[str], label: str, needs_labels: bool) -> Iterator[_Row]:
    """Objects whose labels are a list."""
    for line, row in read_json_lines(path):
        place = f"{path}, line {line}"
        for name in (*texts, *((label,) if needs_labels else ())):
            if name not in row:
                raise UserError(f"{place}: no {name!r}; there are {', '.join(map(repr, row))}")
        values = row.get(label)
        if values is not None and not isinstance(values, list):
            raise UserError(f"{place}: {label} is no list of labels; write [] where there is none")
        names = None
        if values is not None:
            names = _distinct((tables.as_text(each, f"{place}, {label}") for each in values), place)
        yield line, [tables.as_text(row[name], f"{place}, {name}") for name in texts], names


def _distinct(names: Iterator[str], place: str) -> tuple[str, ...]:
    """The labels of a row. Raises UserError if one is empty, or there twice."""
    found: list[str] = []
    for name in names:
        if not name:
            raise UserError(f"{place}: one of the labels is empty; remove it")
        if name in found:
            raise UserError(f"{place}: the label {name!r} is there twice; remove one")
        found.append(name)
    return tuple(found)
