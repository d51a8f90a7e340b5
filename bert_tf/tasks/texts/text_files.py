"""Finding and reading the texts that a configuration names, whatever their format."""

import dataclasses
from pathlib import Path

from bert_tf.data import tables
from bert_tf.errors import UserError
from bert_tf.tasks.texts import glue, tfds_rows
from bert_tf.tasks.texts.config import TextData
from bert_tf.tasks.texts.glue_tasks import GLUE
from bert_tf.tasks.texts.labelled_texts import LabelledTexts

FORMATS = (*tables.FORMATS, *GLUE, "tfds")
_SPLITS = ("train", "dev", "test")


def glue_task(data: TextData) -> str:
    """The GLUE task of the data, or "".

    >>> glue_task(TextData(path="glue/RTE", format="rte"))
    'rte'
    >>> glue_task(TextData(path=".", format="tsv"))
    ''
    """
    if data.format in GLUE:
        return data.format
    return tfds_rows.glue_task(data.path) if data.format == "tfds" else ""


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
    return GLUE[task].tfds_texts if data.format == "tfds" else GLUE[task].texts


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
    folder, name = Path(data.path), getattr(data, split)
    if name:
        return {"": folder / name}
    if data.format in GLUE:
        return glue.find_files(folder, data.format, split)
    if data.format == "tfds":
        return {ending: folder / each for ending, each in _tfds_splits(data, split).items()}
    path = folder / f"{split}.{data.format}"
    return {"": path} if split != "test" or path.is_file() else {}


def read(path: Path, data: TextData, needs_labels: bool = False) -> LabelledTexts:
    r"""The rows of a file, or of a split of TFDS if no file has such a name.

    >>> _ = Path("train.tsv").write_text("text\tlabel\na lovely film\tgood\n")
    >>> rows = read(Path("train.tsv"), TextData(path=".", format="tsv"))
    >>> rows.columns, rows.labels
    ((['a lovely film'],), ['good'])

    Args:
        path: the file, or the name and the split.
        data: its format and columns; a table that is not one of the configured files is read by
            its ending, if that is one of `tables.FORMATS`.
        needs_labels: whether it is a mistake if there are no labels. If not, labels that are
            empty in every row count as missing.

    Raises:
        UserError: the file cannot be used; the message names the mistake and its place.
    """
    columns = text_columns(data)
    if data.format in GLUE:
        rows = glue.read_glue(path, data.format)
    elif data.format == "tfds" and not path.is_file():
        rows = tfds_rows.read_tfds(str(path.parent), path.name, columns, data.label_column)
    else:
        rows = _read_table(path, data, columns, needs_labels)
    if needs_labels and rows.labels is None:
        raise UserError(f"{rows.source} has no labels")
    if needs_labels or any(label.strip() for label in rows.labels or ()):
        return dataclasses.replace(rows, path=path)
    return dataclasses.replace(rows, path=path, labels=None)


def _read_table(
    path: Path, data: TextData, texts: tuple[str, ...], needs_labels: bool
) -> LabelledTexts:
    file_format = format_of(path, data)
    label = (data.label_column,)
    needed = (*texts, *label) if needs_labels else texts
    rows = list(tables.read_table(path, file_format, needed, label, classes=label))
    has_labels = bool(rows) and data.label_column in rows[0][1]
    for line, row in rows:
        if (data.label_column in row) != has_labels:
            one = "no label" if has_labels else "a label"
            raise UserError(
                f"{path}, line {line}: {one}, unlike earlier rows; label all rows or none"
            )
    return LabelledTexts(
        source=str(path),
        columns=tuple([row[column] for _, row in rows] for column in texts),
        labels=[row[data.label_column] for _, row in rows] if has_labels else None,
        places=[line for line, _ in rows],
    )


def format_of(path: Path, data: TextData) -> str:
    """How a table is written; see `tables.format_of`.

    >>> format_of(Path("other.csv"), TextData(path=".", format="tsv"))
    'csv'

    Raises:
        UserError: the data are of TFDS, and the file has no ending that names a format.
    """
    own = [each for split in _SPLITS for each in find_files(data, split).values()]
    file_format = tables.format_of(path, data.format, own)
    if file_format == "tfds":  # a run on TFDS has no format of files
        raise UserError(
            f"the name of {path} must end in .tsv, .csv or .jsonl, which gives its format"
        )
    return file_format


def _tfds_splits(data: TextData, split: str) -> dict[str, str]:
    task, name = glue_task(data), tfds_rows.SPLITS[split]
    if task and split != "train":
        return GLUE[task].named(name)
    # Few other sets have a test split without labels.
    return {} if split == "test" else {"": name}
