"""Checks what Python users pass to `fit`, `evaluate` and `predict`, and makes lists of it."""

import collections
import dataclasses
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Text
from bert_tf.encoder.encoder import INPUTS
from bert_tf.errors import UserError
from bert_tf.io.json_files import whole_text

# Characters of a value that a message quotes.
_SHOWN = 60


@dataclasses.dataclass(frozen=True)
class Given:
    """Rows as the user gave them.

    >>> given = Given(columns=(["a", "b", "c", "d"],), targets=[0, 1, 0, 1])
    >>> train, validation = given.split(0.25)
    >>> train.columns, validation.columns, validation.targets
    ((['a', 'b', 'c'],), (['d'],), [1])

    Attributes:
        columns: the inputs, each a list with an entry for each row.
        targets: the target of each row; None if targets were not given.
        weights: float32 [rows], the weight of each row; None if all count equally.
    """

    columns: tuple[list, ...]
    targets: list | None = None
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.columns[0])

    def rows(self, start: int, stop: int | None = None) -> "Given":
        """The rows from `start` to before `stop`."""
        part = slice(start, stop)
        return Given(
            tuple(column[part] for column in self.columns),
            None if self.targets is None else self.targets[part],
            None if self.weights is None else self.weights[part],
        )

    def split(self, share: float) -> tuple["Given", "Given"]:
        """All rows but the last share of them, and that share, as Keras's `validation_split` does.

        Raises:
            UserError: one of the two parts would have no rows.
        """
        at = int(len(self) * (1 - share))
        if not 0 < at < len(self):
            raise UserError(
                f"validation_split {share} of {len(self)} rows leaves one of the two parts empty; "
                "give more rows, or validation_data"
            )
        return self.rows(0, at), self.rows(at)


def is_text(value: Any) -> bool:
    """Whether a value is one string.

    >>> is_text("one text"), is_text(tf.constant("one text")), is_text(["one text"])
    (True, True, False)
    """
    return isinstance(value, str | bytes) or (
        tf.is_tensor(value) and value.dtype == tf.string and value.shape.rank == 0
    )


def is_for_keras(x: Any) -> bool:
    """Whether inputs are for Keras itself: ids by name, or an object that gives batches of them.

    Everything else is taken as strings, so that the error message names the wrong value.

    >>> is_for_keras({"input_word_ids": [[2, 5, 3]]}), is_for_keras(["one text"])
    (True, False)
    """
    if isinstance(x, tf.data.Dataset):
        return not holds_strings(x)
    if isinstance(x, Mapping):
        return any(name in x for name in INPUTS)
    # Generators, Keras's own data sets and distributed ones.
    return (
        isinstance(x, keras.utils.PyDataset | tf.distribute.DistributedDataset)
        or hasattr(x, "__next__")
        or x is None
    )


def holds_strings(dataset: tf.data.Dataset) -> bool:
    """Whether the inputs in a dataset are strings.

    >>> texts = tf.data.Dataset.from_tensor_slices((["a", "b"], [0, 1]))
    >>> holds_strings(texts), holds_strings(tf.data.Dataset.range(2))
    (True, False)
    """
    first = tf.nest.flatten(inputs_of(dataset.element_spec))
    return any(getattr(each, "dtype", None) == tf.string for each in first)


def inputs_of(element: Any) -> Any:
    """The inputs in an element of a dataset: (x, y), (x, y, weights), or x alone.

    >>> inputs_of(("a text", 1)), inputs_of("a text")
    ('a text', 'a text')
    """
    return element[0] if isinstance(element, tuple) else element


def from_dataset(dataset: tf.data.Dataset, steps: int | None, what: str) -> tuple[Any, Any]:
    """All inputs and targets of a batched dataset of strings, as tuples and lists.

    >>> dataset = tf.data.Dataset.from_tensor_slices((["a", "b", "c"], [0, 1, 0])).batch(2)
    >>> from_dataset(dataset, None, "x")
    ([b'a', b'b', b'c'], [0, 1, 0])

    Args:
        dataset: its elements are (x, y), or x alone; x is a column of texts or several.
        steps: batches to take; None takes all.
        what: the name of the dataset in messages.

    Returns:
        The columns as a tuple, or one column; and the targets, None if there are none.

    Raises:
        UserError: it never ends, or is not batched.
    """
    if steps is not None:
        dataset = dataset.take(steps)
    elif dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise UserError(f"{what} is an endless dataset; give the number of steps")
    check_batched(dataset, what)
    parts = [element if isinstance(element, tuple) else (element,) for element in dataset]
    if not parts:
        raise UserError(f"{what} has no rows")

    def joined(*batches: Any) -> list:
        return [row for batch in batches for row in as_list(batch, "a batch")]

    columns: tuple = tf.nest.map_structure(joined, *parts)
    return columns[0], columns[1] if len(columns) > 1 else None


def check_batched(dataset: tf.data.Dataset, what: str) -> None:
    """Raises UserError if the elements of a dataset are single rows.

    >>> check_batched(tf.data.Dataset.from_tensor_slices(["a", "b"]), "x")
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: x is a dataset of single rows; batch it first: dataset.batch(32)
    """
    first = tf.nest.flatten(inputs_of(dataset.element_spec))[0]
    if first.shape.rank == 0:
        raise UserError(f"{what} is a dataset of single rows; batch it first: dataset.batch(32)")


def as_batch(x: Any) -> tuple[Any, bool]:
    """Inputs as columns, and whether they were those of a single row.

    >>> as_batch("one text")
    (['one text'], True)
    >>> as_batch(("first", "second"))
    ((['first'], ['second']), True)
    >>> as_batch(["a text", "another"])
    (['a text', 'another'], False)
    """
    columns = [*x.values()] if isinstance(x, Mapping) else x if isinstance(x, tuple) else (x,)
    if columns and all(map(is_text, columns)):
        return tf.nest.map_structure(lambda text: [text], x), True
    return x, False


def columns_of(x: Any, names: Sequence[str]) -> tuple[list, ...]:
    """The inputs as one list for each of `names`.

    >>> columns_of((["a", "b"], ["c", "d"]), ("text_a", "text_b"))
    (['a', 'b'], ['c', 'd'])
    >>> columns_of({"text": ["a", "b"]}, ("text",))
    (['a', 'b'],)

    Args:
        x: a column for one name, a tuple of columns for several, or a dict by names.
        names: of the inputs that the model takes.

    Raises:
        UserError: other inputs than the model takes, or columns of different lengths.
    """
    if isinstance(x, Mapping):
        missing = [name for name in names if name not in x]
        if missing:
            raise UserError(f"no input {missing[0]!r}; the model takes {' and '.join(names)}")
        columns = tuple(x[name] for name in names)
    elif isinstance(x, tuple):
        columns = x
    else:
        columns = (x,)
    if len(columns) != len(names):
        if len(names) == 1:
            raise UserError(
                f"the model takes single texts, but a tuple of {len(columns)} columns was given; "
                "give a list of texts"
            )
        raise UserError(
            f"the model takes {' and '.join(names)}, but one column was given; give a tuple of "
            f"{len(names)} columns: ({', '.join(names)})"
        )
    lists = tuple(as_list(each, name) for each, name in zip(columns, names, strict=True))
    counts = {name: len(each) for name, each in zip(names, lists, strict=True)}
    if len(set(counts.values())) > 1:
        said = " and ".join(f"{count} of {name}" for name, count in counts.items())
        raise UserError(f"the columns have different numbers of rows: {said}")
    return lists


def as_list(values: Any, name: str) -> list:
    """Converts a list, NumPy array, pandas Series or tensor to a list.

    >>> as_list(np.array([1, 2]), "x"), as_list(tf.constant([[1], [2]]), "x")
    ([1, 2], [[1], [2]])
    >>> as_list("one text", "x")
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: x is one string; give a list of strings

    Raises:
        UserError: it is none of these.
    """
    if is_text(values):
        raise UserError(f"{name} is one string; give a list of strings")
    if isinstance(values, tf.RaggedTensor):
        return values.to_list()
    if tf.is_tensor(values):
        values = values.numpy()
    if hasattr(values, "tolist"):
        return values.tolist()
    if isinstance(values, list | tuple | Sequence):
        return list(values)
    raise UserError(
        f"{name} must be a list, an array, a pandas Series or a tensor, not {_quoted(values)}"
    )


def texts_of(values: Sequence, name: str) -> list[Text]:
    """Checks that each value is a string, and returns them as a list.

    >>> texts_of(("a", "b"), "text")
    ['a', 'b']
    >>> texts_of(["a", 3], "text")
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: text 1 is 3, not a string

    Raises:
        UserError: one is not; with its position.
    """
    for row, value in enumerate(values):
        if not isinstance(value, str | bytes):
            what = f"{name} {row} is {_quoted(value)}, not a string"
            if isinstance(value, tuple | list) and all(isinstance(x, int) for x in value):
                what += "; give texts, or token ids as a dict of the encoder's inputs"
            elif isinstance(value, tuple | list):
                what += (
                    "; give pairs as two columns, (first_texts, second_texts), not as a list of "
                    "pairs"
                )
            if value is None or isinstance(value, float) and value != value:
                what = f"{name} {row} is missing ({value}); give a string"
            raise UserError(what)
    return list(values)


def lists_of_texts(values: Sequence, name: str) -> list[list[Text]]:
    """Checks that each value is a list of strings, for example the words of a sentence.

    >>> lists_of_texts([("Ada", "sat"), ("Hello",)], "words")
    [['Ada', 'sat'], ['Hello']]

    Raises:
        UserError: one is not; with its position.
    """
    lists = []
    for row, value in enumerate(values):
        if is_text(value) or value is None or isinstance(value, numbers.Number):
            raise UserError(f"{name} {row} is {_quoted(value)}, not a list of strings")
        lists.append(texts_of(as_list(value, f"{name} {row}"), f"{name} {row}, entry"))
    return lists


def check_count(columns: Sequence[Sequence], values: Sequence, what: str) -> None:
    """Raises UserError if the number of values is not the number of rows, or there are no rows.

    >>> check_count((["a", "b"],), [1], "labels")
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: there are 2 rows, but 1 labels; give one for each row
    """
    rows = len(columns[0])
    if not rows:
        raise UserError("there are no rows; give at least one")
    if len(values) != rows:
        raise UserError(f"there are {rows} rows, but {len(values)} {what}; give one for each row")


def weights_of(sample_weight: Any, columns: Sequence[Sequence]) -> np.ndarray | None:
    """The weight of each row: float32 [rows]; None if there are no weights.

    >>> weights_of([1, 0.5], (["a", "b"],)).tolist()
    [1.0, 0.5]

    Raises:
        UserError: there are not as many as rows, or one is not a finite number.
    """
    if sample_weight is None:
        return None
    values = as_list(sample_weight, "sample_weight")
    check_count(columns, values, "sample weights")
    try:
        weights = np.array(values, np.float32)
    except (TypeError, ValueError):
        weights = np.full(1, np.nan)
    if weights.ndim != 1 or not np.isfinite(weights).all():
        raise UserError("sample_weight must have one finite number for each row")
    return weights


def label_texts(values: Sequence, name: str = "label") -> tuple[list[str], bool]:
    """Labels as text, and whether they are integers.

    >>> label_texts(["good", "bad"]), label_texts([1, 0])
    ((['good', 'bad'], False), (['1', '0'], True))

    Raises:
        UserError: a label is missing, is a boolean or a fraction, or integers and texts are mixed;
            with its position.
    """
    texts: list[str] = []
    kinds: dict[type, int] = {}
    for row, value in enumerate(values):
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if value is None or isinstance(value, float) and value != value:
            raise UserError(f"{name} {row} is missing")
        if isinstance(value, bool | np.bool_):
            said = "true" if value else "false"
            raise UserError(f"{name} {row} is the boolean {said}; give a text or a number")
        if not isinstance(value, str | int | np.integer):
            raise UserError(
                f"{name} {row} is {_quoted(value)}; give names or whole numbers, or use a "
                "TextRegressor to predict numbers"
            )
        kinds.setdefault(str if isinstance(value, str) else int, row)
        texts.append(str(value))
    if len(kinds) > 1:
        raise UserError(
            f"{name} {kinds[str]} is a string, but {name} {kinds[int]} is a number; give labels "
            "of one kind"
        )
    return texts, int in kinds


def check_class_names(names: Sequence[str]) -> None:
    """Raises UserError if a name occurs twice, or cannot be a line of a file of labels.

    An empty name is an error too, because it would be taken as padding.

    >>> check_class_names(["good", "bad", "good"])
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: the label 'good' occurs 2 times; give each class its own label
    """
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


def _quoted(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
