"""Texts, or pairs of texts, each with a label or a number: the common form of all formats."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, Self, TypeVar

import numpy as np

from bert_tf.errors import UserError

# Labels that a message lists.
_LISTED = 20


Label = TypeVar("Label")


@dataclasses.dataclass(frozen=True)
class Texts(Generic[Label]):
    """The rows of one file, in its order.

    >>> rows = Texts("train.tsv", (["a film", "a play"],), ["good", "bad"], places=[2, 3])
    >>> rows.take([1]).columns, rows.where(1)
    ((['a play'],), 'train.tsv, line 3')

    Attributes:
        source: their origin, for messages.
        columns: one column of texts, or two for pairs.
        labels: the label of each row as it is written; None without labels.
        places: the place of each row, such as the number of its line.
        place: the unit of the places: "line" or "row".
        classes: all possible labels in the order of the logits, if the format names them.
        benchmark: the task of GLUE that the rows are of (see `bert_tf.tasks.texts.glue`), or "".
        path: the file, or for TFDS the name and the split; None for rows from neither.
    """

    source: str
    columns: tuple[Sequence[str | bytes], ...]
    labels: list[Label] | None
    places: Sequence[int]
    place: str = "line"
    classes: tuple[str, ...] = ()
    benchmark: str = ""
    path: Path | None = None

    def __post_init__(self) -> None:
        if not self.places:
            raise UserError(f"{self.source} has no rows")

    def __len__(self) -> int:
        return len(self.places)

    def first(self, rows: int | None) -> Self:
        """The first `rows` rows; None is all of them."""
        return self.take(range(len(self))[:rows])

    def take(self, rows: Sequence[int]) -> Self:
        """Some of the rows, in the order in which they are given."""
        return dataclasses.replace(
            self,
            columns=tuple([column[row] for row in rows] for column in self.columns),
            labels=self.labels and [self.labels[row] for row in rows],
            places=[self.places[row] for row in rows],
        )

    def where(self, row: int) -> str:
        """The place of a row, for messages."""
        return f"{self.source}, {self.place} {self.places[row]}"

    def known_labels(self) -> list[Label]:
        """The labels. Raises UserError if there are none."""
        if self.labels is None:
            raise UserError(f"{self.source} has no labels")
        return self.labels

    def class_at(self, row: int, name: str, classes: Mapping[str, int]) -> int:
        """The number of a class that the row has. Raises UserError if it is unknown."""
        if name not in classes:
            known = ", ".join([*classes][:_LISTED]) + ", …" * (len(classes) > _LISTED)
            raise UserError(f"{self.where(row)}: label {name!r} is unknown; the labels are {known}")
        return classes[name]


def class_order(names: set[str]) -> tuple[str, ...]:
    """Names of classes in their order: whole numbers as numbers, everything else as text.

    >>> class_order({"10", "9", "2"}), class_order({"good", "bad"})
    (('2', '9', '10'), ('bad', 'good'))
    """
    if all(name.isascii() and name.isdigit() for name in names):
        # Of 1 and 01, which are as great, the order is not to be left to chance.
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


@dataclasses.dataclass(frozen=True)
class LabelledTexts(Texts[str]):
    """Texts with a label, or a number, for each.

    >>> rows = LabelledTexts("train.tsv", (["a film", "a play"],), ["good", "bad"], places=[2, 3])
    >>> rows.all_classes(), rows.class_ids().tolist()
    (('bad', 'good'), [1, 0])
    """

    def all_classes(self) -> tuple[str, ...]:
        """The classes that the format knows, or else the labels that occur, in order.

        Raises:
            UserError: there are fewer than two, or one that cannot name a class: it is empty, or
                a file of labels, one a line, or a TSV file of predictions could not hold it.
        """
        if self.classes:
            return self.classes
        for row, name in enumerate(self.labels or ()):
            self._check_not_empty(row, name)
            if [name] != name.strip().splitlines() or "\t" in name:
                raise UserError(
                    f"{self.where(row)}: the label {name!r} has spaces around it, or a tab or a "
                    "line break in it; remove them"
                )
        found = set(self.labels or ())
        if len(found) < 2:
            only = f"only one label, {found.pop()!r}" if found else "no labels"
            raise UserError(f"{self.source}: {only}; a classifier requires two or more")
        return class_order(found)

    def class_ids(self, classes: Sequence[str] = ()) -> np.ndarray:
        """int32 [rows]: the place of each label among `classes`, by default `all_classes()`.

        Raises:
            UserError: a label that is not among them, or no labels at all.
        """
        classes = classes or self.all_classes()
        index = {name: i for i, name in enumerate(classes)}
        ids = np.empty(len(self), np.int32)
        for row, name in enumerate(self.known_labels()):
            if name not in index:
                self._check_not_empty(row, name)
            ids[row] = self.class_at(row, name, index)
        return ids

    def numbers(self) -> np.ndarray:
        """float32 [rows]: the labels as numbers.

        Raises:
            UserError: a label that is not a finite number, or no labels at all.
        """
        values = np.empty(len(self), np.float32)
        for row, text in enumerate(self.known_labels()):
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not abs(value) <= float(np.finfo(np.float32).max):
                raise UserError(f"{self.where(row)}: label {text!r} is not a finite number")
            values[row] = value
        return values

    def _check_not_empty(self, row: int, label: str) -> None:
        if not label.strip():
            raise UserError(f"{self.where(row)}: the label is empty; write one, or remove the row")
