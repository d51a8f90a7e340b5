"""Rows of a task as columns: one form for files, for arguments of Python calls, and for TFDS.

A task model states the types of its columns and of its target. These types check all values,
whatever the source, so a file and a list get the same message about the same mistake.
"""

import dataclasses
import numbers
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import tensorflow as tf

from bert_tf.data.arrow import ArrowRows
from bert_tf.errors import UserError

Rows = TypeVar("Rows", bound="Columns")

_SHOWN = 60  # characters of a value that a message quotes
_NUMBERS = {1: "one", 2: "two"}


@dataclasses.dataclass(frozen=True)
class Columns:
    """Rows of a task.

    >>> rows = Columns(("text",), (["a film", "a play"],), ["good", "bad"], "a.tsv", [2, 3])
    >>> rows.take([1]).values, rows.at(1, "label"), len(rows)
    ((['a play'],), 'a.tsv, line 3: label', 2)
    >>> Columns(("text",), (["a film", "a play"],)).at(1, "label")  # given in Python
    'label 1'

    Attributes:
        names: the names of the inputs.
        values: a list for each input, with an entry for each row: a text, or a list of texts.
        targets: the target of each row; None if there are no targets. An entry may be None if rows
            with and without targets are learned together, from a teacher.
        source: what the rows are called in messages.
        places: the place of each row in its file, such as the number of its line; None for rows
            given in Python.
        unit: what the places count: "line" or "row".
        weights: float32 [rows], the weight of each row; None if all count equally.
        ids: what identifies each row in its file, such as the id of a question; None if nothing
            does.
        classes: all classes in the order of the logits, if the format names them.
        path: the file, or for TFDS the name and the split; None for rows given in Python.
    """

    names: tuple[str, ...]
    values: tuple[Sequence[Any], ...]
    targets: Sequence[Any] | None = None
    source: str = "the data"
    places: Sequence[Any] | None = None
    unit: str = "line"
    weights: np.ndarray | None = None
    ids: Sequence[Any] | None = None
    classes: tuple[str, ...] = ()
    path: Path | None = None

    @classmethod
    def of_file(
        cls, path: Path, names: Sequence[str], rows: Iterable[tuple], **others: Any
    ) -> Self:
        """Rows of a file, not checked yet. Each of `rows` is a place, the inputs and a target.

        >>> Columns.of_file(Path("a.tsv"), ["text"], [(2, "a film", "good")]).at(0, "label")
        'a.tsv, line 2: label'
        """
        places, *values, targets = columns_of_rows(rows, len(names) + 2)
        return cls(tuple(names), tuple(values), targets, str(path), places, path=path, **others)

    def __len__(self) -> int:
        return len(self.values[0])

    def column(self, name: str) -> Sequence[Any]:
        """The values of one input."""
        return self.values[self.names.index(name)]

    def take(self, rows: Sequence[int] | range) -> Self:
        """The rows with these numbers, in the given order."""

        def taken(values: Sequence[Any] | None) -> Any:
            if values is None:
                return None
            if isinstance(rows, range) and rows.step == 1:
                return kept(values[rows.start : rows.stop])
            return [values[row] for row in rows]

        return dataclasses.replace(
            self,
            values=tuple(map(taken, self.values)),
            targets=taken(self.targets),
            places=taken(self.places),
            ids=taken(self.ids),
            weights=None if self.weights is None else self.weights[np.asarray(rows, np.int64)],
        )

    def first(self, rows: int | None) -> Self:
        """The first `rows` rows; None for all of them."""
        return self if rows is None else self.take(range(len(self))[:rows])

    def split(self, share: float) -> tuple[Self, Self]:
        """All rows but the last `share` of them, and that share, like Keras's `validation_split`.

        >>> train, validation = Columns(("text",), (["a", "b", "c", "d"],)).split(0.25)
        >>> train.values, validation.values
        ((['a', 'b', 'c'],), (['d'],))

        Raises:
            UserError: one of the two parts would have no rows.
        """
        at = int(len(self) * (1 - share))
        if not 0 < at < len(self):
            raise UserError(
                f"validation_split {share} of {len(self)} rows leaves one of the two parts empty; "
                "give more rows, or validation_data"
            )
        return self.take(range(at)), self.take(range(at, len(self)))

    def and_rows(self, more: "Columns") -> Self:
        """These rows, and others of the same kind after them."""
        pairs = zip(self.values, more.values, strict=True)
        both = (self.targets, more.targets), (self.places, more.places), (self.ids, more.ids)
        targets, places, ids = (
            None if first is None or second is None else [*first, *second] for first, second in both
        )
        return dataclasses.replace(
            self,
            values=tuple([*ours, *theirs] for ours, theirs in pairs),
            targets=targets,
            places=places,
            ids=ids,
        )

    def and_unlabelled(self, more: "Columns") -> Self:
        """These rows, and after them others with weight 0, without their targets."""
        ours = self if self.targets is not None else self.without_targets()
        weights = np.zeros(len(self) + len(more), np.float32)
        weights[: len(self)] = 1 if self.weights is None else self.weights
        return dataclasses.replace(ours.and_rows(more.without_targets()), weights=weights)

    def where(self, row: int) -> str:
        """The place of a row, for messages."""
        if self.places is None:
            return f"row {row}"
        return f"{self.source}, {self.unit} {self.places[row]}"

    def at(self, row: int, what: str) -> str:
        """The place of one value of a row, for messages."""
        return f"{what} {row}" if self.places is None else f"{self.where(row)}: {what}"

    def without_targets(self) -> Self:
        """The rows, none of which has a target."""
        return dataclasses.replace(self, targets=[None] * len(self))

    def known_targets(self, what: str = "labels") -> Sequence[Any]:
        """The targets. Raises UserError if there are none."""
        if self.targets is None:
            raise UserError(f"{self.source} has no {what}")
        return self.targets

    def checked(self, columns: Iterable["Column"], target: "Target | None" = None) -> Self:
        """The rows with checked values.

        >>> Columns(("text",), (["a", 3],)).checked([TextColumn("text")])
        Traceback (most recent call last):
            ...
        bert_tf.errors.UserError: text 1 is 3, not a string

        Raises:
            UserError: there are no rows, a value has the wrong type, or some rows have a target
                and others have none. The message has the place.
        """
        if not len(self):
            is_file = self.places is not None
            raise UserError(
                f"{self.source} has no rows" if is_file else "there are no rows; give at least one"
            )
        values = (
            column.checked(values, self)
            for column, values in zip(columns, self.values, strict=True)
        )
        rows = dataclasses.replace(self, values=tuple(values))
        if target is None or self.targets is None:
            return rows
        if self.places is not None and all(each is None for each in self.targets):
            return dataclasses.replace(rows, targets=None)
        for row, each in enumerate(self.targets):
            if is_missing(each):
                raise UserError(
                    f"{self.at(row, target.what)} is missing, but other rows have one; give all "
                    "rows one, or none"
                )
        rows = target.plain(rows)
        return dataclasses.replace(rows, targets=target.checked(rows))


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas' NA."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ == "NAType"


class Column(ABC):
    """The type of one input; `rank` is 1 for one text per row, and 2 for a list of texts. The
    first request to a server contains the `example`.
    """

    name: str
    example: Any
    rank: ClassVar[int]

    @abstractmethod
    def checked(self, values: Sequence[Any], rows: Columns) -> Sequence[Any]:
        """The values of all rows as strings or lists of strings; `rows` names their places."""

    @abstractmethod
    def is_single(self, value: Any) -> bool:
        """Whether a value belongs to one row and is not a column."""


@dataclasses.dataclass(frozen=True)
class TextColumn(Column):
    """One text for each row.

    >>> TextColumn("text").checked(["a film", "a play"], Columns(("text",), ([],)))
    ['a film', 'a play']

    Attributes:
        name: its name.
        may_be_empty: whether a text may be blank.
        example: a text, for the first request to a server.
    """

    name: str
    may_be_empty: bool = True
    example: str = "What a lovely film."
    rank: ClassVar[int] = 1

    def checked(self, values: Sequence[Any], rows: Columns) -> Sequence[Any]:
        for row, value in enumerate(values):
            if not isinstance(value, str | bytes):
                raise _no_text(value, rows.at(row, self.name))
            if not self.may_be_empty and not value.strip():
                raise UserError(f"{rows.at(row, self.name)} is empty; write one, or remove the row")
        return kept(values)

    def is_single(self, value: Any) -> bool:
        return is_text(value)


@dataclasses.dataclass(frozen=True)
class GroupColumn(Column):
    """A list of texts for each row, such as the choices of a context or the words of a sentence.

    >>> GroupColumn("choices", fewest=2).checked([["tea"]], Columns(("choices",), ([["tea"]],)))
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: choices 0 has 1; give two or more

    Attributes:
        name: its name, a plural.
        fewest: the least number of texts in a list.
        may_be_empty: whether one of the texts may be blank.
        example: the texts of a row, for the first request to a server.
    """

    name: str
    fewest: int = 1
    may_be_empty: bool = False
    example: tuple[str, ...] = ("What a lovely film.", "What a dull play.")
    rank: ClassVar[int] = 2

    def checked(self, values: Sequence[Any], rows: Columns) -> Sequence[Any]:
        lists = []
        for row, value in enumerate(values):
            place = rows.at(row, self.name)
            if is_text(value) or value is None or isinstance(value, numbers.Number):
                raise UserError(f"{place} is {quoted(value)}, not a list of strings")
            texts = as_list(value, place)
            for number, text in enumerate(texts):
                if not isinstance(text, str | bytes):
                    raise _no_text(text, f"{place}, entry {number}")
                if not self.may_be_empty and not text.strip():
                    raise UserError(f"{place}: {self.name.removesuffix('s')} {number} is empty")
            if len(texts) < self.fewest:
                raise UserError(f"{place} has {len(texts)}; give {_NUMBERS[self.fewest]} or more")
            if not isinstance(values, ArrowRows):
                lists.append(texts)
        return values if isinstance(values, ArrowRows) else lists

    def is_single(self, value: Any) -> bool:
        return (
            isinstance(value, Sequence | np.ndarray)
            and not is_text(value)
            and len(value) > 0
            and is_text(value[0])
        )


class Target(ABC):
    """The type of a row's target, which a model learns to predict.

    Attributes:
        what: the name of one row's target in messages.
        plural: the name of several rows' targets.
        column_names: possible names of a table's column of targets; the first that is there counts.
        is_optional: whether rows without targets have a loss of their own.
    """

    what: ClassVar[str] = "label"
    plural: ClassVar[str] = "labels"
    column_names: ClassVar[tuple[str, ...]] = ("label", "labels")
    is_optional: ClassVar[bool] = False

    def checked(self, rows: Columns) -> list:
        """The targets of rows, none of which is missing, in the form that this type has in Python.

        Raises:
            UserError: a value is not such a target. The message has the place.
        """
        given = enumerate(rows.known_targets())
        return [self.checked_one(rows, row, value) for row, value in given]

    def checked_one(self, rows: Columns, row: int, value: Any) -> Any:
        """The checked target of one row. A type that defines `checked` does not need this."""
        raise NotImplementedError

    @abstractmethod
    def numbers(self, rows: Columns) -> np.ndarray:
        """[rows, ...]: the checked targets as the model learns them.

        A row without a target has any value; `rows.weights` or the training leave it out.

        Raises:
            UserError: the model cannot predict a target. The message has the place.
        """

    def is_in(self, rows: Columns) -> bool:
        """Whether rows have something to learn without a teacher."""
        return rows.targets is not None

    def encoded(self, y: Any) -> Any:
        """The targets of a batch of a dataset in the form of `numbers`, computed in a graph."""
        return y

    def plain(self, rows: Rows) -> Rows:
        """The rows with targets in the form that `checked` takes; they may have had another form.

        Raises:
            UserError: a target has neither form. The message has the place.
        """
        return rows

    def from_text(self, text: str) -> Any:
        """An unchecked target from its text in a table; None if it is left out."""
        return text


def columns_of_rows(rows: Iterable[Sequence[Any]], count: int) -> list[Any]:
    """Rows of `count` values as `count` columns, even if there are no rows."""
    if isinstance(rows, ArrowRows):
        return [rows.map(operator.itemgetter(place)) for place in range(count)]
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(count)]


def kept(values: Iterable[Any]) -> Sequence[Any]:
    """Values as a list; those that are made only when they are read stay as they are."""
    return values if isinstance(values, ArrowRows | range) else list(values)


def is_text(value: Any) -> bool:
    """Whether a value is one string, which may be a tensor."""
    if isinstance(value, str | bytes | list | tuple):  # checked first: `tf.is_tensor` is slow
        return isinstance(value, str | bytes)
    return tf.is_tensor(value) and value.dtype == tf.string and value.shape.rank == 0


def as_list(values: Any, name: str) -> Any:
    """The values of a list, array, Series, tensor, generator or Arrow column; `ArrowRows` stay."""
    if isinstance(values, list | ArrowRows):
        return values if isinstance(values, ArrowRows) else list(values)
    if is_text(values):
        raise UserError(f"{name} is one string; give a list of strings")
    if isinstance(values, tf.RaggedTensor):
        return values.to_list()
    if tf.is_tensor(values):
        values = values.numpy()
    for method in ("tolist", "to_list", "to_pylist"):  # NumPy and pandas, polars, pyarrow
        if hasattr(values, method):
            return getattr(values, method)()
    if isinstance(values, list | tuple | Sequence) or hasattr(values, "__next__"):
        return list(values)
    raise UserError(
        f"{name} must be a list, an array, a pandas Series or a tensor, not {quoted(values)}"
    )


def quoted(value: Any) -> str:
    """A value as a message shows it: cut where it is long."""
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def _no_text(value: Any, place: str) -> UserError:
    """The error for a value that is not a string."""
    if is_missing(value):
        return UserError(f"{place} is missing ({value}); give a string")
    said = f"{place} is {quoted(value)}, not a string"
    if isinstance(value, tuple | list) and all(isinstance(x, int) for x in value):
        said += "; give texts, or token ids as a dict of the encoder's inputs"
    elif isinstance(value, tuple | list):
        said += "; give pairs as two columns, (first_texts, second_texts), not as a list of pairs"
    return UserError(said)
