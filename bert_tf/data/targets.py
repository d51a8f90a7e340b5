"""The types of targets that several tasks share: a label, any number of labels, and a number."""

import collections
import dataclasses
import numbers
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from bert_tf.data.columns import Columns, Rows, Target, as_list, is_missing, quoted
from bert_tf.errors import UserError
from bert_tf.io.json_files import whole_text

_LISTED = 20  # labels that a message lists
_WHOLE_NUMBER = re.compile("-?[0-9]+")
_LARGEST = float(np.finfo(np.float32).max)

_LISTS = list | tuple | np.ndarray  # possible types of one row's targets


@dataclasses.dataclass(frozen=True)
class Label(Target):
    """One of several classes, by its name.

    >>> from bert_tf.data.columns import TextColumn
    >>> rows = Columns(("text",), (["a film", "a play"],), [1, 0])
    >>> labels = Label(("0", "1"))
    >>> rows = rows.checked([TextColumn("text")], labels)
    >>> rows.targets, labels.numbers(rows).tolist()
    (['1', '0'], [1, 0])
    >>> rows = Columns(("text",), (["a film", "a play"],), [[0, 1], [1, 0]])  # one-hot
    >>> rows.checked([TextColumn("text")], Label(("bad", "good"))).targets
    ['good', 'bad']

    Attributes:
        classes: the names in the order of the logits; () before they are known.
    """

    classes: tuple[str, ...] = ()

    def plain(self, rows: Rows) -> Rows:
        """Makes names of classes from one-hot rows; they are numbers until the names are known."""
        given = rows.known_targets()
        if not all(isinstance(each, _LISTS) for each in given):
            return rows
        names = self.classes or tuple(map(str, range(max(len(given[0]), 2))))
        targets = []
        for row, each in enumerate(given):
            values = as_list(each, "a row")
            if (values.count(0), values.count(1), len(values)) != (len(names) - 1, 1, len(names)):
                raise UserError(
                    f"{rows.at(row, self.what)} is {quoted(each)}; give a name, a whole number, or "
                    f"a one-hot row of {len(names)} entries, one of which is 1 and the others 0"
                )
            targets.append(names[values.index(1)])
        return dataclasses.replace(rows, targets=targets, classes=names)

    def checked(self, rows: Columns) -> list:
        """Names. Whole numbers and booleans become text."""
        return class_names(rows.known_targets(), lambda row: rows.at(row, self.what))

    def numbers(self, rows: Columns) -> np.ndarray:
        """int32 [rows]: the number of each row's class; 0 for a row without a label."""
        index = {name: number for number, name in enumerate(self.classes)}
        found = np.zeros(len(rows), np.int32)
        for row, name in enumerate(rows.known_targets()):
            if name is not None:
                found[row] = self.number(rows, row, name, index)
        return found

    def number(self, rows: Columns, row: int, name: str, index: dict[str, int]) -> int:
        """The number of the class `name` of a row. Raises UserError if it is unknown."""
        if name not in index:
            _check_names(rows, [(row, name)])
            known = ", ".join(self.classes[:_LISTED]) + ", …" * (len(self.classes) > _LISTED)
            raise UserError(f"{rows.where(row)}: label {name!r} is unknown; the labels are {known}")
        return index[name]

    def found_in(self, rows: Columns) -> tuple[str, ...]:
        """The classes that the rows' format lists, or else those that occur, in order.

        Raises:
            UserError: there are fewer than two labels, or one that cannot name a class.
        """
        if rows.classes:
            return rows.classes
        _check_names(rows, enumerate(rows.known_targets()))
        found = {name for name in rows.known_targets() if name is not None}
        if len(found) < 2:
            raise UserError(
                f"{rows.source}: only one label, {found.pop()!r}; a classifier requires two or more"
            )
        return class_order(found)

    def encoded(self, y: tf.Tensor) -> tf.Tensor:
        """int32 [batch]: names, whole numbers, booleans or one-hot rows, to classes."""
        if y.dtype == tf.string or y.shape.rank != 2 or y.shape[1] == 1:
            return class_numbers(y, self.classes)
        ones, zeros = (tf.math.count_nonzero(y == tf.cast(v, y.dtype), axis=1) for v in (1, 0))
        are_right = tf.reduce_all((ones == 1) & (zeros == len(self.classes) - 1))
        are_right &= tf.shape(y)[1] == len(self.classes)
        said = f"in the dataset, a label is not a one-hot row of {', '.join(self.classes)}"
        with tf.control_dependencies([tf.debugging.Assert(are_right, [said])]):
            return tf.argmax(tf.cast(y, tf.int32), axis=1, output_type=tf.int32)


@dataclasses.dataclass(frozen=True)
class Labels(Label):
    """Any number of classes, by their names.

    >>> from bert_tf.data.columns import TextColumn
    >>> labels, rows = Labels(("late", "cold")), Columns(("text",), (["a", "b"],), [["cold"], []])
    >>> labels.numbers(rows.checked([TextColumn("text")], labels)).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    what: ClassVar[str] = "labels"

    def plain(self, rows: Rows) -> Rows:
        """Makes names, as `Label` does, from rows with a 1 or a 0 for each class."""
        given = rows.known_targets()
        width = len(given[0]) if len(given) and isinstance(given[0], _LISTS) else 0
        names = self.classes or tuple(map(str, range(width)))
        are_flags = len(names) > 1 and all(
            isinstance(each, _LISTS)
            and len(each) == len(names)
            and all(isinstance(value, numbers.Real) and value in (0, 1) for value in each)
            for each in given
        )
        # Classes may be named 0 and 1. In a row of names, each name occurs only once.
        named = {"0", "1"} <= {*names} and all(len({*each}) == len(each) for each in given)
        if named or not are_flags:
            return rows
        targets = [
            [name for name, is_set in zip(names, each, strict=True) if is_set] for each in given
        ]
        return dataclasses.replace(rows, targets=targets, classes=names)

    def checked(self, rows: Columns) -> list:
        """The names of each row; a row may have none."""
        return Target.checked(self, rows)

    def checked_one(self, rows: Columns, row: int, value: Any) -> tuple[str, ...]:
        place = rows.at(row, self.what)
        if isinstance(value, str | bytes | int | float):
            raise UserError(f"{place} is {value!r}; give a list of labels, which may be empty")
        given = as_list(value, place)
        names = class_names(given, lambda _: f"{rows.at(row, 'labels')}, one of them,")
        names = [name for name in names if name]  # "" pads the rows of a dataset
        for number, name in enumerate(names):
            if name in names[:number]:
                raise UserError(f"{rows.where(row)}: the label {name!r} occurs twice; remove one")
        return tuple(names)

    def numbers(self, rows: Columns) -> np.ndarray:
        """float32 [rows, classes]: 1 where a row has a label, else 0."""
        index = {name: number for number, name in enumerate(self.classes)}
        found = np.zeros((len(rows), len(self.classes)), np.float32)
        for row, names in enumerate(rows.known_targets()):
            for name in names or ():
                found[row, self.number(rows, row, name, index)] = 1.0
        return found

    def found_in(self, rows: Columns) -> tuple[str, ...]:
        if rows.classes:
            return rows.classes
        pairs = [(row, name) for row, names in enumerate(rows.known_targets()) for name in names]
        if not pairs:
            raise UserError(f"{rows.source}: no row has a label; label some rows to train")
        _check_names(rows, pairs)
        return class_order({name for _, name in pairs})

    def encoded(self, y: tf.Tensor) -> tf.Tensor:
        """float32 [batch, classes]: names, string [batch, n] padded with "", or 0 and 1."""
        if y.dtype != tf.string:
            return tf.cast(y, tf.float32)
        names = y if isinstance(y, tf.RaggedTensor) else tf.RaggedTensor.from_tensor(y, padding="")
        rows = tf.one_hot(class_numbers(names.values, self.classes), len(self.classes))
        found = tf.math.unsorted_segment_sum(rows, names.value_rowids(), names.nrows())
        return tf.minimum(found, 1.0)


@dataclasses.dataclass(frozen=True)
class Number(Target):
    """A number.

    >>> from bert_tf.data.columns import TextColumn
    >>> rows = Columns(("text",), (["a"],), ["high"])
    >>> rows.checked([TextColumn("text")], Number())
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: label 0 is 'high', not a finite number
    """

    what: ClassVar[str] = "label"

    def checked_one(self, rows: Columns, row: int, value: Any) -> float:
        return finite_number(value, rows.at(row, self.what))

    def numbers(self, rows: Columns) -> np.ndarray:
        """float32 [rows]; 0 for a row without a number."""
        return np.array([each or 0.0 for each in rows.known_targets()], np.float32)

    def encoded(self, y: tf.Tensor) -> tf.Tensor:
        """float32 [batch]."""
        return tf.cast(y, tf.float32)

    def from_text(self, text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return text


def finite_number(value: Any, place: str) -> float:
    """A value as a number, which float32 must be able to hold; `place` names it in messages."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if not is_number or not abs(value) <= _LARGEST:
        raise UserError(f"{place} is {quoted(value)}, not a finite number")
    return float(value)


def class_names(values: Sequence[Any], place: Any = "label {}".format) -> list[str]:
    """Names of classes as text; `place` gives the place of one of them, for messages. Whole numbers
    may also be floats, since pandas writes them so if other values are missing.
    """
    names: list[str] = []
    kinds: dict[str, int] = {}
    for row, value in enumerate(values):
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if is_missing(value):
            raise UserError(f"{place(row)} is missing")
        if isinstance(value, bool | np.bool_):
            kind, value = "a boolean", bool(value)
        elif isinstance(value, str):
            kind = "a string"
        elif isinstance(value, int | np.integer) or (
            isinstance(value, float | np.floating) and float(value).is_integer()
        ):
            kind, value = "a number", int(value)
        else:
            raise UserError(
                f"{place(row)} is {quoted(value)}; give names or whole numbers, or use a "
                "TextRegressor to predict numbers"
            )
        kinds.setdefault(kind, row)
        names.append(sys.intern(str(value)))
    if len(kinds) > 1:
        (one, first), (other, second) = [*kinds.items()][:2]
        raise UserError(
            f"{place(second)} is {other}, but {place(first)} is {one}; give labels of one kind"
        )
    return names


def class_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names of classes in their order: whole numbers as numbers, everything else as text."""
    if all(map(_WHOLE_NUMBER.fullmatch, names)):
        # 1 and 01 are the same number: their order is that of their texts.
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def check_class_names(names: Sequence[str]) -> None:
    """Raises UserError if a name occurs twice, is empty as padding, or is not one line of text."""
    for name in names:
        if whole_text(name) != name:
            raise UserError(
                f"the label {name!r} has half of a surrogate pair, which UTF-8 cannot hold; "
                "remove it"
            )
        if name.splitlines() != [name]:
            raise UserError(
                f"the label {name!r} is not one line of text; give each class a name of one line"
            )
    name, times = collections.Counter(names).most_common(1)[0]
    if times > 1:
        raise UserError(f"the label {name!r} occurs {times} times; give each class its own label")


def class_numbers(names: tf.Tensor, classes: Sequence[str]) -> tf.Tensor:
    """The numbers of classes in a graph: strings, whole numbers or booleans -> int32, [...]."""
    if names.dtype == tf.bool:
        names = tf.where(names, "True", "False")
    elif names.dtype.is_floating:
        whole = tf.strings.as_string(tf.cast(names, tf.int64))
        as_written = tf.strings.as_string(names, shortest=True)
        names = tf.where(names == tf.floor(names), whole, as_written)
    elif names.dtype != tf.string:
        names = tf.strings.as_string(names)
    matches = names[..., tf.newaxis] == tf.constant(classes)
    is_known = tf.reduce_any(matches, axis=-1)
    unknown = tf.boolean_mask(names, ~is_known)
    said = tf.strings.join(
        [
            "in the dataset, the label '",
            tf.concat([unknown, [""]], axis=0)[0],
            f"' is unknown; the labels are {', '.join(classes)}",
        ]
    )
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(is_known), [said])]):
        return tf.argmax(matches, axis=-1, output_type=tf.int32)


def _check_names(rows: Columns, names: Iterable[tuple[int, str | None]]) -> None:
    """Raises UserError if a row has a label that cannot be a line of a file, or a field of one."""
    for row, name in names:
        if name is None:
            continue
        if not name.strip():
            raise UserError(f"{rows.where(row)}: the label is empty; write one, or remove the row")
        if [name] != name.strip().splitlines() or "\t" in name:
            raise UserError(
                f"{rows.where(row)}: the label {name!r} has spaces around it, or a tab or a line "
                "break in it; remove them"
            )
