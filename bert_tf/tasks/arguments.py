"""Checking the arguments of a task model that come from a file of unknown origin."""

import typing
from collections.abc import Mapping
from typing import Any

_PLAIN = {bool, int, float, str, type(None)}
_SHOWN = 60


def wrong_argument(cls: type[object], fields: Mapping[str, Any], **hints: Any) -> str | None:
    """Names a field that is not of the constructor's type; None if all fields are.

    >>> class Model:
    ...     def __init__(self, max_length: int | None, dropout: float | None): ...
    >>> wrong_argument(Model, {"max_length": 128, "dropout": 0})
    >>> wrong_argument(Model, {"max_length": "128"})
    "max_length is '128', not what it should be"

    Args:
        cls: the class.
        fields: arguments by name; only arguments of plain types are checked.
        **hints: the types of further fields.
    """
    known = typing.get_type_hints(cls.__init__) | hints
    for name, value in fields.items():
        kinds = typing.get_args(known.get(name)) or (known.get(name),)
        is_one = type(value) in kinds or type(value) is int and float in kinds
        if {*kinds} <= _PLAIN and not is_one:
            return f"{name} is {repr(value)[:_SHOWN]}, not what it should be"
    return None
