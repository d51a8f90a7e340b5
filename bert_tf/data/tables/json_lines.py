"""JSON lines: one object with named values on every line that is not blank."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.errors import UserError
from bert_tf.io.files import read_text


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    r"""Every object, with the number of its line.

    >>> _ = Path("train.jsonl").write_text('{"text": "lovely", "label": 1}\n\n{"text": "late"}\n')
    >>> list(read_json_lines(Path("train.jsonl")))
    [(1, {'text': 'lovely', 'label': 1}), (3, {'text': 'late'})]

    Raises:
        UserError: a line that is not JSON, with the column, or not an object.
    """
    text = read_text(path, "data").removeprefix("\ufeff")
    # At line feeds only: JSON texts may hold U+2028 and the like as they are.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _object(line, f"{path}, line {number}")


def whole_text(text: str) -> str:
    """`text` with U+FFFD in place of a lone surrogate, which JSON can write and UTF-8 cannot.

    >>> whole_text("ab" + chr(0xD800)) == "ab" + chr(0xFFFD)
    True
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _object(line: str, place: str) -> dict[str, Any]:
    try:
        values = json.loads(line, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise UserError(f"{place}, column {error.colno}: not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:  # too deep, or a number of too many digits
        raise UserError(f"{place}: JSON that cannot be read ({error})") from None
    if not isinstance(values, dict):
        raise UserError(
            f"{place}: expected an object with named values, one in each line (of pandas, "
            "to_json(orient='records', lines=True))"
        )
    return values


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no value of JSON")
