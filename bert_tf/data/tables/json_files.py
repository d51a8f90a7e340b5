"""Whole JSON files, and checks of values in them that report each mistake with its place."""

import json
from pathlib import Path
from typing import Any

from bert_tf.errors import UserError
from bert_tf.io.files import read_text

_KINDS = {
    list: "a list",
    dict: "an object",
    str: "a text",
    int: "a whole number",
    bool: "true or false",
}


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    >>> _ = Path("data.json").write_text('{"data": [1, 2]}')
    >>> read_json(Path("data.json"))
    {'data': [1, 2]}

    Raises:
        UserError: it is not JSON; with line and column.
    """
    text = read_text(path, "data").removeprefix("\ufeff")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UserError(f"{path}, {place}: not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:  # too deep, or a number of too many digits
        raise UserError(f"{path}: JSON that cannot be read ({error})") from None


def value_at(path: Path, place: str, holder: Any, key: str, kind: type) -> Any:
    """The value holder[key], after checking that it exists and is of its kind.

    >>> article = {"title": "Rivers"}
    >>> value_at(Path("squad.json"), "data[3]", article, "title", str)
    'Rivers'
    >>> value_at(Path("squad.json"), "data[3]", article, "paragraphs", list)
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: squad.json: data[3] has no key 'paragraphs'

    Args:
        path: the file.
        place: of `holder` in it, such as data[3].paragraphs[0]; "" is the whole file.
        holder: the object that should have the key.
        key: the key.
        kind: list, dict, str, int or bool.

    Raises:
        UserError: it is not; with the place.
    """
    name = place or "the file"
    if not isinstance(holder, dict):
        raise UserError(f"{path}: {name} must be an object with the key {key!r}")
    if key not in holder:
        raise UserError(f"{path}: {name} has no key {key!r}")
    if type(holder[key]) is not kind:
        raise UserError(f"{path}: {f'{place}.{key}'.lstrip('.')} must be {_KINDS[kind]}")
    return holder[key]
