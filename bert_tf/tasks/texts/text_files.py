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
# In data sets of TFDS, the label of a row that has none.
_NO_LABEL = -1
# The feature of GLUE's sets that gives the place of a row in the official file. The rows themselves
# are stored in another order.
_ROW_NUMBER = "idx"

# The label of a row, from the row, its place, and whether all values are texts.
LabelOf = Callable[[Mapping[str, Any], str, bool], Any]


def glue_task(data: TextData) -> str:
    """The GLUE task of the data, or "".

    >>> glue_task(TextData(path="glue/RTE", format="rte"))
    'rte'
    >>> glue_task(TextData(path=".", format="tsv"))
    ''
    """
    if data.format in GLUE:
        return data.format
    return tfds_glue_task(data.path) if data.format == "tfds" else ""


def tfds_glue_task(name: str) -> str:
    """The GLUE task of a data set of TFDS, or "".

    >>> tfds_glue_task("glue/rte"), tfds_glue_task("imdb_reviews")
    ('rte', '')
    """
    family, _, config = name.partition(":")[0].partition("/")
    config = config.partition("/")[0]
    return config if family == "glue" and config in GLUE else ""


def text_columns(data: TextData) -> tuple[str, ...]:
    """The columns of the text, or of both texts.

    >>> text_columns(TextData(path="glue/RTE", format="rte"))
    ('sentence1', 'sentence2')
    >>> text_columns(TextData(path=".", format="csv"))
    ('text',)

    Raises:
        UserError: columns are configured for data whose columns are known.
    """
    task = glue_task(data)
    if not task:
        return data.text_columns or ("text",)
    for key in ("text_columns", "label_column"):
        if not data.is_default(key):
            raise UserError(
                f"data.{key} cannot be set for {task}, whose columns are fixed; remove it"
            )
    texts, others = GLUE[task].texts, GLUE[task].other_texts
    return others or texts if data.format == "tfds" else texts


def find_files(data: TextData, split: str) -> dict[str, Path]:
    """The files of "train", "dev" or "test", by the suffix of their metrics' names.

    For TFDS a file is the name and the split. "test" gives the configured file, or one that exists.

    >>> find_files(TextData(path="reviews", format="tsv"), "train")[""].as_posix()
    'reviews/train.tsv'

    Raises:
        UserError: an unknown format.
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
        return {ending: folder / each for ending, each in _tfds_splits(data, split).items()}
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
    r"""The rows of a file, or of a split of TFDS if no file has such a name.

    >>> from bert_tf.data.targets import Label
    >>> _ = Path("train.tsv").write_text("text\tlabel\na lovely film\tgood\n")
    >>> rows = read(Path("train.tsv"), TextData(path=".", format="tsv"), Label())
    >>> rows.values, rows.targets
    ((['a lovely film'],), ['good'])

    Args:
        path: the file, or the name and the split.
        data: its format and columns; a table that is not one of the configured files is read by
            its ending, if that is one of `tables.FORMATS`.
        target: the type of its labels.
        needs_labels: whether it is a mistake if there are no labels. If not, labels that are
            empty in every row count as missing.
        label_of: makes the label of a row of a table, given the row, its place, and whether all
            values are texts; None takes the column of labels.

    Raises:
        UserError: the file cannot be used; the message names the mistake and its place.
    """
    columns = text_columns(data)
    if data.format in GLUE:
        rows = glue.read_glue(path, data.format)
    elif data.format == "tfds" and not is_file(path):
        rows = read_tfds(str(path.parent), path.name, columns, data.label_column)
    else:
        label_of = label_of or (lambda row, *_: row.get(data.label_column))
        is_arrow = arrow.reads(path, data.format)
        reader = _read_arrow if is_arrow else _read_table
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
    """The rows of a table of Arrow, not checked yet."""
    table, labels = arrow.read(path), _label_columns(data)
    table.check_texts(texts)
    if needs_labels:
        table.check(labels)
    known = [name for name in labels if name in table.names]
    for name in known:
        table = table.labelled(name)

    def label(number: int, row: dict[str, Any]) -> Any:
        # Where a column of labels is of texts, these are joined as in other tables.
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
    """The rows of a table, not checked yet."""
    labels = _label_columns(data)
    needed = (*texts, *labels) if needs_labels else texts
    file_format = format_of(path, data)
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


def format_of(path: Path, data: TextData) -> str:
    """How a table is written; see `tables.format_of`.

    >>> format_of(Path("other.csv"), TextData(path=".", format="tsv"))
    'csv'

    Raises:
        UserError: the data are of TFDS, and the file has no ending that names a format.
    """
    own = [each for split in SPLITS for each in find_files(data, split).values()]
    file_format = tables.format_of(path, data.format, own)
    if file_format == "tfds":  # a run on TFDS has no format of files
        raise UserError(
            f"the name of {path} must end in .tsv, .csv or .jsonl, which gives its format"
        )
    return file_format


def _tfds_splits(data: TextData, split: str) -> dict[str, str]:
    task, name = glue_task(data), SPLITS[split]
    if task and split != "train":
        return GLUE[task].named(name)
    # Few other sets have a test split without labels.
    return {} if split == "test" else {"": name}
