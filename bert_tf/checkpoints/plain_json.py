"""JSON files of unknown origin: read as plain data, with mistakes reported in one line."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import UserError
from bert_tf.io.files import read_text

# The key of another format's configuration under which we keep what that format cannot say.
EXTRA_KEY = "bert_tf"


def read_object(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in the file at `path`; `what` names its role in messages.

    Raises:
        UserError: the file is missing, or is not a JSON object.
    """
    fields = _read(path, what)
    if not isinstance(fields, dict):
        raise UserError(f"{what} is not a JSON object: {path}; copy it again")
    return fields


def read_array(path: Path, what: str) -> list[Any]:
    """The JSON array in the file at `path`; as `read_object`."""
    entries = _read(path, what)
    if not isinstance(entries, list):
        raise UserError(f"{what} is not a JSON array: {path}; copy it again")
    return entries


def _read(path: Path, what: str) -> Any:
    text = read_text(path, what)
    try:
        return json.loads(text, parse_int=_whole_number)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{what} is not JSON: {path}, line {error.lineno} ({error.msg}); copy it again"
        ) from None
    except (RecursionError, ValueError) as error:  # nested, or with a number, beyond all measure
        raise UserError(f"{what} is not JSON: {path} ({error}); copy it again") from None


def _whole_number(digits: str) -> int:
    if math.isinf(float(digits)):
        raise ValueError("a number is too large")
    return int(digits)


def write_object(path: Path, fields: Mapping[str, Any]) -> None:
    """Writes `fields` as a JSON object that reads well."""
    _write(path, fields)


def write_array(path: Path, entries: Sequence[Any]) -> None:
    """Writes `entries` as a JSON array, likewise."""
    _write(path, entries)


def _write(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")
