"""Contexts with several endings, one of which fits: SWAG, CODAH, and JSON lines.

SWAG (Zellers et al. 2018, github.com/rowanz/swagaf): CSV with a header; the endings continue the
beginning of a sentence, `sent2`, after the sentence `sent1`. CODAH (Chen et al. 2019,
github.com/Websail-NU/CODAH): TSV without a header of category, context, four endings and answer.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.data.tables import read_table, read_tsv
from bert_tf.errors import UserError
from bert_tf.io.json_files import read_json_lines, whole_text

FORMATS = ("swag", "codah", "jsonl")

_ENDINGS = tuple(f"ending{i}" for i in range(4))
# Columns of CODAH.
_CONTEXT, _FIRST_ENDING, _ANSWER = 1, 2, 6
# The labels of rows that have none.
_NO_LABEL = (None, "", "-1", -1)
# JSON keys of the choices.
_CHOICES = ("choices", "endings")


class Choices(NamedTuple):
    """One row.

    Attributes:
        context: the text that the choices continue.
        choices: the choices; none of them is empty.
        label: the number of the right choice, counted from 0; None if it is not known.
    """

    context: str
    choices: tuple[str, ...]
    label: int | None


def read_choices(path: Path, file_format: str) -> list[Choices]:
    """The rows of a file, in its order. All have as many choices, and all or none have a label.

    An empty label or -1 means that there is none.

    >>> row = '{"context": "The kettle whistles.", "choices": ["I pour.", "It snows."], "label": 0}'
    >>> _ = Path("train.jsonl").write_text(row)
    >>> read_choices(Path("train.jsonl"), "jsonl")
    [Choices(context='The kettle whistles.', choices=('I pour.', 'It snows.'), label=0)]

    Raises:
        UserError: a missing column or key, another number of choices than in the row before, an
            empty choice, a label that is none of them, no rows; with the line.
    """
    readers = {"swag": _swag, "codah": _codah, "jsonl": _json_lines}
    rows: list[Choices] = []
    for line, context, choices, label in readers[file_format](path):
        place = f"{path}, line {line}"
        right = None if label in _NO_LABEL else _label(place, label, choices)
        row = Choices(context, choices, right)
        _check_none_empty(place, choices)
        if rows and len(choices) != len(rows[0].choices):
            raise UserError(
                f"{place}: {len(choices)} choices, but earlier rows have {len(rows[0].choices)}; "
                "give all rows the same number"
            )
        if rows and (row.label is None) != (rows[0].label is None):
            one = "no label" if row.label is None else "a label"
            raise UserError(f"{place}: {one}, unlike earlier rows; label all rows or none")
        rows.append(row)
    if not rows:
        raise UserError(f"{path} has no rows")
    return rows


_Row = tuple[int, str, tuple[str, ...], Any]


def _swag(path: Path) -> Iterator[_Row]:
    columns = ("sent1", "sent2", *_ENDINGS)
    for line, row in read_table(path, "csv", columns, optional=("label",)):
        endings = tuple(row[ending] for ending in _ENDINGS)
        # Joined with the beginning, none would look empty.
        _check_none_empty(f"{path}, line {line}", endings)
        choices = tuple(f"{row['sent2']} {ending}".strip() for ending in endings)
        yield line, row["sent1"], choices, row.get("label")


def _codah(path: Path) -> Iterator[_Row]:
    for line, fields in read_tsv(path):
        if len(fields) not in (_ANSWER, _ANSWER + 1):
            raise UserError(
                f"{path}, line {line}: {len(fields)} fields; CODAH has {_ANSWER + 1}: category, "
                "context, four endings, answer"
            )
        label = fields[_ANSWER] if len(fields) > _ANSWER else None
        yield line, fields[_CONTEXT], tuple(fields[_FIRST_ENDING:_ANSWER]), label


def _json_lines(path: Path) -> Iterator[_Row]:
    for line, row in read_json_lines(path):
        place = f"{path}, line {line}"
        key = next((each for each in _CHOICES if each in row), None)
        if key is None or "context" not in row:
            missing = "context" if key else " or ".join(map(repr, _CHOICES))
            raise UserError(f"{place}: no {missing}; the keys are {', '.join(row)}")
        choices = row[key]
        if not isinstance(row["context"], str):
            raise UserError(f"{place}: context must be a text")
        if not isinstance(choices, list) or not all(isinstance(each, str) for each in choices):
            raise UserError(f"{place}: {key} must be a list of texts")
        if len(choices) < 2:
            raise UserError(f"{place}: {len(choices)} choices; there must be two or more")
        yield line, whole_text(row["context"]), tuple(map(whole_text, choices)), row.get("label")


def _check_none_empty(place: str, choices: tuple[str, ...]) -> None:
    for number, choice in enumerate(choices):
        if not choice.strip():
            raise UserError(f"{place}: choice {number} is empty")


def _label(place: str, label: Any, choices: tuple[str, ...]) -> int:
    """A label of a file as a number; true and 1.0 are not labels."""
    try:
        number = int(label) if isinstance(label, str) else label
    except ValueError:
        number = None
    if type(number) is not int:
        raise UserError(f"{place}: label {label!r} is not a whole number")
    if not 0 <= number < len(choices):
        raise UserError(
            f"{place}: label {number} is out of range; it must be from 0 to {len(choices) - 1}, "
            "the number of a choice"
        )
    return number
