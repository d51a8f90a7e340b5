"""JSON: files and lines, with every mistake reported with its place, and values of NumPy."""

import collections
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.errors import UserError
from bert_tf.io.files import WHOLE, read_text

# The kinds of values in words.
KINDS: dict[object, str] = {
    list: "a list",
    dict: "an object",
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return _parsed(text_of(path), path)


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object with named values on every line that is not blank, with the number of the line."""
    # At line feeds only: JSON texts may hold U+2028 and the like as they are.
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if not line.strip():
            continue
        values = _parsed(line, path, number, parse_constant=_refuse)
        if not isinstance(values, dict):
            raise UserError(
                f"{path}, line {number}: expected one JSON object per line (in pandas: "
                "to_json(orient='records', lines=True))"
            )
        yield number, values


def text_of(path: Path) -> str:
    """The text of a data file, without a byte-order mark."""
    return read_text(path, "data", WHOLE).removeprefix("\ufeff")


def whole_text(text: str) -> str:
    """`text` with U+FFFD in place of a lone surrogate, which JSON can write and UTF-8 cannot."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_value(value: Any) -> Any:
    """A text, or a list of values, with `whole_text` of each text; anything else as it is."""
    if isinstance(value, list):
        return list(map(whole_value, value))
    return whole_text(value) if isinstance(value, str) else value


def value_at(path: Path, place: str, holder: Any, key: str, kind: type) -> Any:
    """The value holder[key] of its kind; `place` is the holder's, such as data[3].paragraphs[0]."""
    name = place or "the file"
    if not isinstance(holder, dict):
        raise UserError(f"{path}: {name} must be an object with the key {key!r}")
    if key not in holder:
        raise UserError(f"{path}: {name} has no key {key!r}")
    if type(holder[key]) is not kind:
        raise UserError(f"{path}: {f'{place}.{key}'.lstrip('.')} must be {KINDS[kind]}")
    return holder[key]


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError if it has a key twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        (twice, _), *_ = collections.Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"an object has the key {twice!r} twice")
    return values


def as_json(value: Any) -> Any:
    """A NumPy value as plain data of JSON; float32 becomes its shortest decimal number: 0.1."""
    if getattr(value, "ndim", 0):
        return [as_json(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value.dtype == "float32":
        return float(str(value))
    return value.item()


def _parsed(text: str, path: Path, line: int | None = None, **options: Any) -> Any:
    """The value of a JSON text; `line` is its number if it is one line of the file."""
    try:
        return json.loads(text, object_pairs_hook=object_of, **options)
    except json.JSONDecodeError as error:
        place = f"line {line or error.lineno}, column {error.colno}"
        raise UserError(f"{path}, {place}: not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:  # too deep, or a number of too many digits
        place = f", line {line}" if line else ""
        raise UserError(f"{path}{place}: the JSON cannot be read ({error})") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not valid JSON")
