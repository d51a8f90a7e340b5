"""JSON files of unknown origin: read as plain data, with mistakes reported in one line."""

import collections
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import UserError
from bert_tf.io.files import is_there, read_text
from bert_tf.io.json_files import KINDS

_SHOWN = 60


def read_if_there(path: Path, what: str) -> dict[str, Any]:
    """As `read_object`; {} if there is no such file."""
    return read_object(path, what) if is_there(path) else {}


def read_object(path: Path, what: str, kind: type = dict) -> Any:
    """The JSON object in a file, or the array if `kind` is list; `what` names it in messages."""
    text = read_text(path, what)
    try:
        value = json.loads(text, parse_int=_whole_number, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{what} is not JSON: {path}, line {error.lineno} ({error.msg}); copy it again"
        ) from None
    except (RecursionError, ValueError) as error:  # nested too deeply, or too large a number
        raise UserError(f"{what} is not JSON: {path} ({error}); copy it again") from None
    if not isinstance(value, kind):
        expected = "object" if kind is dict else "array"
        raise UserError(f"{what} is not a JSON {expected}: {path}; copy it again")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        ((twice, _),) = collections.Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(twice)} occurs twice")
    return fields


def _whole_number(digits: str) -> int:
    if math.isinf(float(digits)):
        raise ValueError("a number is too large")
    return int(digits)


def write(path: Path, value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Writes `value` as indented JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")


def checked(path: Path, name: str, value: Any, kind: type) -> Any:
    """The value of the field `name`. Raises UserError if it is not of type `kind`."""
    if type(value) is not kind:
        raise UserError(f"{path}: {name} must be {KINDS[kind]}, not {shown(value)}")
    return value


def shown(value: Any) -> str:
    """A value in a message, cut if it is long."""
    return repr(value)[:_SHOWN]


def is_outside(name: str) -> bool:
    """Whether a file's name in a JSON file may lead out of the folder."""
    return name in (".", "..") or any(each in name for each in "/\\\0")
