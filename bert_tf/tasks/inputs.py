"""Checks the arguments of `fit`, `evaluate` and `predict`, and turns them into lists."""

import functools
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import rows_of
from bert_tf.data import arrow
from bert_tf.data.columns import Column, Columns, as_list, columns_of_rows
from bert_tf.encoder.encoder import INPUTS
from bert_tf.errors import UserError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def columns_may_follow(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Accepts two columns as two arguments, as in `predict(queries, passages)`, besides a tuple.
    The second takes the place of the batch size. Models that may take one column need a tuple.
    """
    place = [*inspect.signature(method).parameters].index("batch_size")

    @functools.wraps(method)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        is_column = len(args) > place and {"__len__", "__next__"} & {*dir(args[place])}
        if is_column and takes_two(args[0]):
            model, first, second, *others = args
            return method(model, (first, second), *others, **kwargs)  # type: ignore[arg-type]
        return method(*args, **kwargs)

    return call


def takes_two(model: Any) -> bool:
    """Whether all models of the class take two columns; true for exports, which do not say."""
    own = getattr(type(model), "columns", None)
    return own is None or isinstance(own, tuple) and len(own) == 2


def by_name(x: Any, columns: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The inputs of `predict`, if some or all of them are given by their names."""
    if x is None or not columns:
        return dict(columns) or x
    for name in columns:
        if name not in names[1:]:
            raise UserError(
                f"predict takes no {name} together with x; the inputs are {' and '.join(names)}"
            )
    return {names[0]: x, **columns}


def is_for_keras(x: Any) -> bool:
    """Whether inputs are for Keras itself: ids by name, or an object that gives batches of ids.
    Anything else counts as strings, so that the error message names the wrong value.
    """
    if isinstance(x, tf.data.Dataset):
        first = tf.nest.flatten(inputs_of(x.element_spec))
        return not any(getattr(each, "dtype", None) == tf.string for each in first)
    if isinstance(x, Mapping):
        return any(name in x for name in INPUTS)
    # Generators, Keras's own data sets and distributed ones.
    return (
        isinstance(x, keras.utils.PyDataset | tf.distribute.DistributedDataset)
        or hasattr(x, "__next__")
        or x is None
    )


def of_generator(x: Any, may_read: bool = True) -> Any:
    """Inputs, unchanged except that a generator of strings is read to its end, if `may_read`."""
    if not hasattr(x, "__next__"):
        return x
    first = [*itertools.islice(x, 1)]
    x = (each for each in itertools.chain(first, x))  # Keras takes no other iterators
    if first and is_for_keras(inputs_of(first[0])):
        return x
    if not may_read:
        raise UserError(
            "a generator of strings can be read only once; give lists, or a dataset: "
            "tf.data.Dataset.from_generator(…).batch(32)"
        )
    rows = [*x]
    if not rows or not isinstance(rows[0], tuple):
        return rows
    if len({*map(len, rows)}) > 1:
        raise UserError("the rows of the generator have different numbers of inputs; give all")
    return tuple(columns_of_rows(rows, len(rows[0])))


def of_table(model: Any, x: Any, y: Any = None, what: str = "x") -> tuple[Any, Any]:
    """Inputs and targets as they are, or the columns of a table, where `y` may name the targets."""
    if not arrow.is_table(x):
        return x, y
    table = arrow.of_object(x, what)
    if isinstance(y, str):
        table.check([y])
        table = table.labelled(y)
    return model.named(table, y)


def inputs_of(element: Any) -> Any:
    """The inputs in an element of a dataset: (x, y), (x, y, weights), or x alone."""
    return element[0] if isinstance(element, tuple) else element


def from_dataset(dataset: tf.data.Dataset, steps: int | None, what: str) -> tuple[Any, Any]:
    """The inputs and targets (or None) in a dataset of strings, or in its first `steps` batches."""
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
    """Raises UserError if the elements of a dataset are single rows."""
    first = tf.nest.flatten(inputs_of(dataset.element_spec))[0]
    if first.shape.rank == 0:
        raise UserError(f"{what} is a dataset of single rows; batch it first: dataset.batch(32)")


def asked(x: Any, columns: Sequence[Column]) -> tuple[list[dict[str, Any]], bool]:
    """Inputs of `predict` as rows, and whether a single row was given."""
    names = tuple(column.name for column in columns)
    if isinstance(x, Mapping):
        given = [x[name] for name in names if name in x]
    else:
        given = [*x] if isinstance(x, tuple) else [x]
    single = len(given) == len(columns) and columns[0].is_single(given[0])
    single = single and all(
        column.is_single(each)
        for column, each in zip(columns, given, strict=True)
        if column.rank == 1
    )
    if single:
        x = tuple([each] for each in given)
    values = columns_of(x, names)
    if not values[0]:
        return [], False
    return rows_of(Columns(names, values).checked(columns).values, names), single


def columns_of(x: Any, names: Sequence[str]) -> tuple[list, ...]:
    """A column, a tuple of columns, or a dict of them by name, as one list for each of `names`."""
    if isinstance(x, Mapping):
        missing = [name for name in names if name not in x]
        if missing:
            raise UserError(f"no input {missing[0]!r}; the model takes {' and '.join(names)}")
        columns = tuple(x[name] for name in names)
    else:
        columns = x if isinstance(x, tuple) else (x,)
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


def check_count(columns: Sequence[Sequence], values: Sequence, what: str) -> None:
    """Raises UserError if the number of values is not the number of rows, or there are no rows."""
    rows = len(columns[0])
    if not rows:
        raise UserError("there are no rows; give at least one")
    if len(values) != rows:
        raise UserError(f"there are {rows} rows, but {len(values)} {what}; give one for each row")


def weights_of(sample_weight: Any, columns: Sequence[Sequence]) -> np.ndarray | None:
    """The weight of each row: float32 [rows]; None if there are no weights."""
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
