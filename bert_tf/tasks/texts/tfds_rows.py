"""Texts and labels of TensorFlow Datasets, by name."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.console import logger
from bert_tf.data.columns import Columns
from bert_tf.data.tfds import one_line, read_rows, tfds, tfds_builder
from bert_tf.errors import UserError
from bert_tf.tasks.texts.glue import GLUE, NAMES

# What most data sets call the splits that are "train", "dev" and "test" here.
SPLITS = {"train": "train", "dev": "validation", "test": "test"}

# The label of a row that has none.
_NO_LABEL = -1
# The feature of GLUE's sets that gives the place of a row in the official file. The rows themselves
# are stored in another order.
_ROW_NUMBER = "idx"


def load_split(name: str, split: str) -> tuple[Iterable[Mapping[str, Any]], Mapping[str, Any]]:
    """The rows of a split, such as train[:10%], as NumPy values, and the features that they have.

    Raises:
        UserError: as `tfds_builder`; a split that is not there; while iterating, as `read_rows`.
    """
    builder = tfds_builder(name)
    try:
        rows = tfds().as_numpy(builder.as_dataset(split=split, shuffle_files=False))
    # TFDS has many kinds of errors for a split that is not there.
    except Exception as error:
        raise UserError(f"TFDS cannot give {name}, split {split}: {one_line(error)}") from error
    return read_rows(rows, f"TFDS {name}, split {split}"), builder.info.features


def glue_task(name: str) -> str:
    """The GLUE task of a data set, or "".

    >>> glue_task("glue/rte"), glue_task("imdb_reviews")
    ('rte', '')
    """
    family, _, config = name.partition(":")[0].partition("/")
    config = config.partition("/")[0]
    return config if family == "glue" and config in GLUE else ""


def read_tfds(name: str, split: str, text_columns: Sequence[str], label_column: str) -> Columns:
    """The rows of a split. The names of a ClassLabel are its classes; -1 means no label.

    The rows of GLUE are in the order of the official files, as submissions number them.

    Raises:
        UserError: as `load_split`; a feature is missing, or a text column holds no text.
    """
    rows, features = load_split(name, split)
    source = f"TFDS {name}, split {split}"
    for column in (*text_columns, label_column):
        if column not in features:
            raise UserError(
                f"{source}: no feature {column!r}; the features are {', '.join(features)}"
            )
    kept = list(rows)
    task = glue_task(name)
    if task and _ROW_NUMBER in features:
        kept.sort(key=lambda row: int(row[_ROW_NUMBER]))
    for column in text_columns:
        if not all(isinstance(row[column], bytes) for row in kept):
            raise UserError(f"{source}: the feature {column!r} is not a text")
    if any(np.ndim(row[label_column]) for row in kept):
        raise UserError(f"{source}: the feature {label_column!r} is not one label for each row")
    classes = tuple(getattr(features[label_column], "names", None) or ())
    has_labels = True
    if classes or task:
        labelled = [row for row in kept if row[label_column] != _NO_LABEL]
        has_labels = bool(labelled)
        if has_labels and len(labelled) < len(kept):
            left_out = len(kept) - len(labelled)
            logger.warning(f"{source}: rows skipped because they have no label: {left_out}")
            kept = labelled
    labels = [_value(row[label_column], classes) for row in kept] if has_labels else None
    return Columns(
        names=NAMES[len(text_columns)],
        values=tuple([_value(row[column]) for row in kept] for column in text_columns),
        targets=labels,
        source=source,
        places=range(1, len(kept) + 1),
        unit="row",
        classes=classes,
        path=Path(name) / split,
    )


def _value(value: Any, classes: Sequence[str] = ()) -> Any:
    """A value of Python; a class has a name."""
    if classes:
        return classes[value]
    return (
        value.decode("utf-8", "replace") if isinstance(value, bytes) else np.asarray(value).item()
    )
