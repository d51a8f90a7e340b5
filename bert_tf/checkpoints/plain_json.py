"""JSON files of unknown origin: read as plain data, their mistakes told in one line."""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.errors import UserError
from bert_tf.files import read_text
from bert_tf.models import EncoderConfig

# The key of another format's configuration under which we keep what that format cannot say.
EXTRA_KEY = "bert_tf"

_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_SHOWN = 60


def read_object(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in the file at `path`; `what` names its role in messages.

    Raises:
        UserError: the file is missing, or is not a JSON object.
    """
    try:
        fields = json.loads(read_text(path, what), parse_int=_whole_number)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{what} is not JSON: {path}, line {error.lineno} ({error.msg}); copy it again"
        ) from None
    except (RecursionError, ValueError) as error:  # nested, or with a number, beyond all measure
        raise UserError(f"{what} is not JSON: {path} ({error}); copy it again") from None
    if not isinstance(fields, dict):
        raise UserError(f"{what} is not a JSON object: {path}; copy it again")
    return fields


def _whole_number(digits: str) -> int:
    if math.isinf(float(digits)):
        raise ValueError("a number is too large")
    return int(digits)


def encoder_config(fields: Mapping[str, Any], path: Path) -> EncoderConfig:
    """The encoder's sizes among `fields`, what is missing at our default.

    Raises:
        UserError: a size is of the wrong type, or they do not fit together.
    """
    values = {}
    for field in dataclasses.fields(EncoderConfig):
        if field.name not in fields:
            continue
        value = fields[field.name]
        if field.type is float and type(value) is int:
            value = float(value)
        if type(value) is not field.type:
            raise UserError(
                f"{path}: {field.name} must be {_WORDS[field.type]}, not {repr(value)[:_SHOWN]}"
            )
        values[field.name] = value
    try:
        return EncoderConfig(**values)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def write_object(path: Path, fields: Mapping[str, Any]) -> None:
    """Writes `fields` as a JSON object that reads well."""
    text = json.dumps(fields, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")
