"""Finding and reading the texts that a configuration names, whatever their format."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.console import logger
from bert_tf.data import arrow, tables
from bert_tf.data.columns import Columns, Target, TextColumn
from bert_tf.data.tfds import SPLITS, load_split
from bert_tf.errors import UserError
from bert_tf.io.remote import is_file, local_path
from bert_tf.tasks.texts import TextData, glue
from bert_tf.tasks.texts.glue import GLUE, NAMES

FORMATS = (*tables.FORMATS, *arrow.FORMATS, *GLUE, "tfds")
_NO_LABEL = -1  # in data sets of TFDS, the label of a row that has none
# The feature of GLUE's sets that gives the place of a row in the official file. The rows themselves
# are stored in another order.
_ROW_NUMBER = "idx"

# The label of a row, from the row, its place, and whether all values are texts.
LabelOf = Callable[[Mapping[str, Any], str, bool], Any]


def glue_task(data: TextData) -> str:
    """The GLUE task of the data, or ""."""
    if data.format in GLUE:
        return data.format
    return tfds_glue_task(data.path) if data.format == "tfds" else ""


def tfds_glue_task(name: str) -> str:
    """The GLUE task of a data set of TFDS, or ""."""
    family, _, config = name.partition(":")[0].partition("/")
    config = config.partition("/")[0]
    return config if family == "glue" and config in GLUE else ""


def text_columns(data: TextData) -> tuple[str, ...]:
    """The columns of the text, or of both texts."""
    task = glue_task(data)
    if not task:
        return data.text_columns or ("text",)
    for key in ("text_columns", "label_column"):
        if not data.is_default(key):
            raise UserError(
                f"data.{key} cannot be set for {task}, whose columns are fixed; remove it"
            )
    others = GLUE[task].other_texts if data.format == "tfds" else ()
    return others or GLUE[task].texts


def find_files(data: TextData, split: str) -> dict[str, Path]:
    """The files of "train", "dev" or "test", or for TFDS the name and the split, by the suffix of
    their metrics' names; for "test" the configured file, or one that exists.
    """
    if data.format not in FORMATS:
        # The diagnostic set of GLUE is not trained on.
        known = ", ".join(each for each in FORMATS if each != "ax")
        raise UserError(f"unknown data.format {data.format!r}; choose one of {known}")
    folder, name = local_path(data.path), getattr(data, split)
    if name:
        return {"": folder / name}
    if data.format in GLUE:
        return glue.find_files(folder, data.format, split)
    if data.format == "tfds":
        task, name = glue_task(data), SPLITS[split]
        if task and split != "train":
            return {ending: folder / each for ending, each in GLUE[task].named(name).items()}
        # Few other sets have a test split without labels.
        return {} if split == "test" else {"": folder / name}
    path = folder / f"{split}.{data.format}"
    if data.format in arrow.FORMATS:
        path = folder / arrow.default_name(folder, data.format, split)
    is_there = arrow.files_of if data.format == "parquet" else is_file
    return {"": path} if split != "test" or is_there(path) else {}


def read(
    path: Path,
    data: TextData,
    target: Target,
    needs_labels: bool = False,
    label_of: LabelOf | None = None,
) -> Columns:
    """The rows of a file, or of a split of TFDS if no file has such a name. For a table that is not
    configured, its ending decides the format. If labels are not needed, empty ones count as none.
    """
    columns = text_columns(data)
    if data.format in GLUE:
        rows = glue.read_glue(path, data.format)
    elif data.format == "tfds" and not is_file(path):
        rows = read_tfds(str(path.parent), path.name, columns, data.label_column)
    else:
        label_of = label_of or (lambda row, *_: row.get(data.label_column))
        reader = _read_arrow if arrow.reads(path, data.format) else _read_table
        rows = reader(path, data, columns, needs_labels, label_of)
    targets = rows.targets
    if targets is not None:
        is_empty = all(
            each is None or isinstance(each, str) and not each.strip() for each in targets
        )
        targets = [target.from_text(each) if isinstance(each, str) else each for each in targets]
        targets = None if is_empty and not needs_labels else targets
    rows = dataclasses.replace(rows, targets=targets)
    return rows.checked(map(TextColumn, rows.names), target)


def _read_arrow(
    path: Path, data: TextData, texts: tuple[str, ...], needs_labels: bool, label_of: LabelOf
) -> Columns:
    table, labels = arrow.read(path), _label_columns(data)
    table.check_texts(texts)
    if needs_labels:
        table.check(labels)
    known = [name for name in labels if name in table.names]
    for name in known:
        table = table.labelled(name)

    def label(number: int, row: dict[str, Any]) -> Any:
        # If a column of labels holds texts, labels are joined in them as in other tables.
        return label_of(row, f"{path}, row {number}", isinstance(row[known[0]], str))

    return Columns(
        names=NAMES[len(texts)],
        values=tuple(map(table.column, texts)),
        targets=table.rows(known, label) if known else None,
        source=str(path),
        places=range(len(table.data)),
        unit="row",
        classes=table.classes(known[0]) if len(known) == 1 else (),
        path=path,
    )


def _label_columns(data: TextData) -> Sequence[str]:
    return getattr(data, "label_columns", None) or (data.label_column,)


def _read_table(
    path: Path, data: TextData, texts: tuple[str, ...], needs_labels: bool, label_of: LabelOf
) -> Columns:
    labels = _label_columns(data)
    needed = (*texts, *labels) if needs_labels else texts
    own = [each for split in SPLITS for each in find_files(data, split).values()]
    file_format = tables.format_of(path, data.format, own)
    if file_format == "tfds":  # a run on TFDS has no format of files
        raise UserError(
            f"the name of {path} must end in .tsv, .csv or .jsonl, which gives its format"
        )
    rows = list(tables.read_table(path, file_format, needed, labels, targets=labels))
    is_table = file_format != "jsonl"
    return Columns(
        names=NAMES[len(texts)],
        values=tuple([row[column] for _, row in rows] for column in texts),
        targets=[label_of(row, f"{path}, line {line}", is_table) for line, row in rows],
        source=str(path),
        places=[line for line, _ in rows],
        path=path,
    )


def read_tfds(name: str, split: str, text_columns: Sequence[str], label_column: str) -> Columns:
    """The rows of a split; the names of a ClassLabel are its classes, and -1 means no label. Rows
    of GLUE are in the order of the official files, in which submissions number them.
    """
    rows, features = load_split(name, split)
    source = f"TFDS {name}, split {split}"
    for column in (*text_columns, label_column):
        if column not in features:
            raise UserError(
                f"{source}: no feature {column!r}; the features are {', '.join(features)}"
            )
    kept = list(rows)
    task = tfds_glue_task(name)
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
    labels = [row[label_column] for row in kept] if has_labels else []
    named = [classes[label] if classes else _value(label) for label in labels]
    return Columns(
        names=NAMES[len(text_columns)],
        values=tuple([_value(row[column]) for row in kept] for column in text_columns),
        targets=named if has_labels else None,
        source=source,
        places=range(1, len(kept) + 1),
        unit="row",
        classes=classes,
        path=Path(name) / split,
    )


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return np.asarray(value).item()
