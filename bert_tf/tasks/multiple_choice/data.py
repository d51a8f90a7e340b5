"""Contexts with several endings, one of which fits: SWAG, CODAH, and JSON lines.

SWAG (Zellers et al. 2018, github.com/rowanz/swagaf): CSV with a header; the endings continue the
beginning of a sentence, `sent2`, after the sentence `sent1`. CODAH (Chen et al. 2019,
github.com/Websail-NU/CODAH): TSV without a header of category, context, four endings and answer.
"""

import dataclasses
import numbers
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from bert_tf.data import arrow
from bert_tf.data.columns import Columns, GroupColumn, Target, TextColumn, quoted
from bert_tf.data.tables import read_table, read_tsv, rows_of
from bert_tf.errors import UserError
from bert_tf.io.json_files import whole_value

FORMATS = ("swag", "codah", "jsonl", *arrow.FORMATS)
_CONTINUATIONS = "She pours the tea.", "She waters the roof.", "It begins to snow upwards."
COLUMNS = (
    TextColumn("context", example="The kettle whistles."),
    GroupColumn("choices", fewest=2, example=_CONTINUATIONS),
)

_ENDINGS = tuple(f"ending{i}" for i in range(4))
# Columns of CODAH.
_CONTEXT, _FIRST_ENDING, _ANSWER = 1, 2, 6
_NO_LABEL = (None, "", "-1", -1)  # the labels of rows that have none
_CHOICES = ("choices", "endings")  # JSON keys of the choices


@dataclasses.dataclass(frozen=True)
class ChoiceNumber(Target):
    """The number of the right choice, counted from 0."""

    what: ClassVar[str] = "label"

    def checked_one(self, rows: Columns, row: int, value: Any) -> int:
        count = len(rows.column("choices")[row])
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not is_number or value not in range(count):
            raise UserError(
                f"{rows.at(row, self.what)} is {quoted(value)}; it must be the number of one "
                f"of the {count} choices, counted from 0"
            )
        return int(value)

    def numbers(self, rows: Columns) -> np.ndarray:
        """int32 [rows]; 0 of a row without a label."""
        return np.array([each or 0 for each in rows.known_targets()], np.int32)

    def encoded(self, y: Any) -> tf.Tensor:
        return tf.cast(y, tf.int32)

    def from_text(self, text: str) -> Any:
        return int(text) if text.strip().isdecimal() else text


def same_number(rows: Columns) -> Columns:
    """The rows. Raises UserError if they have different numbers of choices."""
    lists = rows.column("choices")
    for row, choices in enumerate(lists):
        if len(choices) != len(lists[0]):
            raise UserError(
                f"{rows.where(row)}: {len(choices)} choices, but earlier rows have "
                f"{len(lists[0])}; give all rows the same number"
            )
    return rows


def read_choices(path: Path, file_format: str) -> Columns:
    """The rows of a file, in its order. All have as many choices, and all or none have a label.

    An empty label or -1 means that there is none.

    >>> row = '{"context": "The kettle whistles.", "choices": ["I pour.", "It snows."], "label": 0}'
    >>> _ = Path("train.jsonl").write_text(row)
    >>> rows = read_choices(Path("train.jsonl"), "jsonl")
    >>> rows.values, rows.targets
    ((['The kettle whistles.'], [['I pour.', 'It snows.']]), [0])

    Raises:
        UserError: a missing column or key, another number of choices than in the row before, an
            empty choice, a label that is not one of the choices, no rows; with the line.
    """
    unit, target = "row" if arrow.reads(path, file_format) else "line", ChoiceNumber()
    reader = {"swag": _swag, "codah": _codah}.get(file_format, _named)
    rows = Columns.of_file(path, ("context", "choices"), reader(path, file_format), unit=unit)
    labels = [
        None if each in _NO_LABEL else target.from_text(each) if isinstance(each, str) else each
        for each in rows.known_targets()
    ]
    return same_number(dataclasses.replace(rows, targets=labels).checked(COLUMNS, target))


_Row = tuple[int, Any, Any, Any]


def _swag(path: Path, _: str) -> Iterator[_Row]:
    columns = ("sent1", "sent2", *_ENDINGS)
    for line, row in read_table(path, "csv", columns, optional=("label",)):
        endings = tuple(row[ending] for ending in _ENDINGS)
        for number, ending in enumerate(endings):
            if not ending.strip():  # the joined choice would not look empty
                raise UserError(f"{path}, line {line}: choice {number} is empty")
        choices = tuple(f"{row['sent2']} {ending}".strip() for ending in endings)
        yield line, row["sent1"], choices, row.get("label")


def _codah(path: Path, _: str) -> Iterator[_Row]:
    for line, fields in read_tsv(path):
        if len(fields) not in (_ANSWER, _ANSWER + 1):
            raise UserError(
                f"{path}, line {line}: {len(fields)} fields; CODAH has {_ANSWER + 1}: category, "
                "context, four endings, answer"
            )
        label = fields[_ANSWER] if len(fields) > _ANSWER else None
        yield line, fields[_CONTEXT], tuple(fields[_FIRST_ENDING:_ANSWER]), label


def _named(path: Path, file_format: str) -> Iterator[_Row]:
    unit, rows = rows_of(path, file_format)
    for line, row in rows:
        place = f"{path}, {unit} {line}"
        key = next((each for each in _CHOICES if each in row), None)
        if key is None or "context" not in row:
            missing = "context" if key else " or ".join(map(repr, _CHOICES))
            raise UserError(f"{place}: no {missing}; the keys are {', '.join(row)}")
        yield line, whole_value(row["context"]), whole_value(row[key]), row.get("label")
