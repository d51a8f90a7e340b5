"""Plain dictionaries -> frozen dataclasses, checked against their type hints.

Any dataclass of these hints can be built: bool, int, float, str, Literal, `X | None`,
`tuple[X, ...]`, `dict[str, X]`, another dataclass (a section), and Annotated with a range below or
`PATH`. A value that does not fit is the user's mistake. It is reported in one line with the key
and the place where it was set.
"""

import contextlib
import dataclasses
import difflib
import glob
import math
import os
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeGuard, TypeVar, get_args, get_origin

from bert_tf.config.yaml_files import Keys, Place, Tree
from bert_tf.errors import UserError

Section = TypeVar("Section")


@dataclasses.dataclass(frozen=True)
class Between:
    """A number from `low` to `high`, both included."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"from {self.low} to {self.high}"

    def admits(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclasses.dataclass(frozen=True)
class AtLeast:
    """A number not below `low`."""

    low: float

    def __str__(self) -> str:
        return f"of at least {self.low}"

    def admits(self, value: float) -> bool:
        return value >= self.low


@dataclasses.dataclass(frozen=True)
class Above:
    """A number greater than `low`."""

    low: float

    def __str__(self) -> str:
        return f"above {self.low}"

    def admits(self, value: float) -> bool:
        return value > self.low


PATH = "path"
"""Marks a string as a path, glob or name.

It is made absolute if it exists in the folder of the file that names it or in the current folder.
"""

NOT_A_KEY = {"key": False}
"""Metadata of a field that no file sets."""

# `int | None` is the first, `Annotated[int, …] | None` the second.
_UNIONS = (types.UnionType, typing.Union)
_NAME_SHOWN = 60


class _Misfit(Exception):
    """The value does not fit the type hint; the caller knows the key and the place."""


def build(section: type[Section], tree: Tree) -> Section:
    """The dataclass `section` and those in it from what `tree` holds.

    Raises:
        UserError: an unknown, missing or ill-typed key, a value out of range, or what a dataclass
            itself refuses in __post_init__.
    """
    _check_known(section, tree.values, (), tree, list(_valid_keys(section)))
    return _build(section, tree.values, (), tree)


def fit(value: object, hint: Any, keys: Keys, place: Place) -> Any:
    """`value` as the type of `hint`. Raises UserError if it is of another type or range."""
    try:
        return _fit(value, hint, place.folder)
    except (_Misfit, OverflowError):
        raise UserError(
            f"{place}: {'.'.join(keys)} must be {_expected(hint)}, got {_told(value)}"
        ) from None


def plain(section: Any) -> dict:
    """What `build` makes `section` from; keys that are null by default are left out."""
    values = {}
    for field in _key_fields(section):
        value = getattr(section, field.name)
        if dataclasses.is_dataclass(value):
            value = plain(value)
        if isinstance(value, tuple):
            value = list(value)
        if value != {} and not (value is None and field.default is None):
            values[field.name] = value
    return values


def _is_section(hint: Any) -> TypeGuard[type]:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def _key_fields(section: Any) -> list[dataclasses.Field]:
    return [f for f in dataclasses.fields(section) if f.metadata != NOT_A_KEY]


def _hints(section: type) -> dict[str, Any]:
    hints = typing.get_type_hints(section, include_extras=True)
    return {field.name: hints[field.name] for field in _key_fields(section)}


def _valid_keys(section: type, keys: Keys = ()) -> Iterator[Keys]:
    for name, hint in _hints(section).items():
        yield (*keys, name)
        if _is_section(hint):
            yield from _valid_keys(hint, (*keys, name))


def _check_known(section: type, values: object, keys: Keys, tree: Tree, valid: list[Keys]) -> None:
    hints = _hints(section)
    for name, value in values.items() if isinstance(values, dict) else ():
        here = (*keys, name)
        if name not in hints:
            raise UserError(
                f"{tree.place(here)}: unknown key {'.'.join(here)[:_NAME_SHOWN]!r}; "
                f"the nearest valid key is {'.'.join(_nearest(here, valid))}"
            )
        if _is_section(hints[name]):
            _check_known(hints[name], value, here, tree, valid)


def _nearest(unknown: Keys, valid: list[Keys]) -> Keys:
    """The most similar name, where one of the same section counts for a little more.

    Initials are as good as the name: lr is learning_rate.
    """

    def similarity(keys: Keys) -> float:
        matcher = difflib.SequenceMatcher(None, unknown[-1][:_NAME_SHOWN], keys[-1])
        initials = "".join(word[:1] for word in keys[-1].split("_"))
        alike = 1.0 if initials == unknown[-1] else matcher.ratio()
        return alike + 0.1 * (keys[:-1] == unknown[:-1])

    return max(valid, key=similarity)


def _build(section: type[Section], values: object, keys: Keys, tree: Tree) -> Section:
    place = tree.place(keys)
    if values is None:  # `train:` with nothing below it
        values = {}
    if not isinstance(values, dict):
        raise UserError(f"{place}: {'.'.join(keys)} must be a section, got {_told(values)}")
    arguments: dict[str, Any] = {}
    for field in _key_fields(section):
        hint, here = _hints(section)[field.name], (*keys, field.name)
        if _is_section(hint):
            arguments[field.name] = _build(hint, values.get(field.name), here, tree)
        elif field.name in values:
            arguments[field.name] = fit(values[field.name], hint, here, tree.place(here))
        elif field.default is dataclasses.MISSING:
            raise UserError(f"{place}: missing key {'.'.join(here)}: {_expected(hint)}")
    try:
        return section(**arguments)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def _fit(value: Any, hint: Any, folder: Path) -> Any:
    origin, members = get_origin(hint), get_args(hint)
    if origin is Annotated:
        value = _fit(value, members[0], folder)
        if members[1] == PATH:
            return _found(value, folder)
        if members[1].admits(value):
            return value
    elif origin in _UNIONS:
        for member in members:
            with contextlib.suppress(_Misfit):
                return _fit(value, member, folder)
    elif origin is tuple:
        if isinstance(value, list) and value:
            return tuple(_fit(each, members[0], folder) for each in value)
    elif origin is dict:
        if isinstance(value, dict) and value:
            return {key: _fit(each, members[1], folder) for key, each in value.items()}
    elif origin is Literal:
        if isinstance(value, str) and value in members:
            return value
    elif hint is float:
        if type(value) in (int, float) and math.isfinite(value):
            return float(value)
    elif type(value) is hint and not (hint is str and "\0" in value):
        return value
    raise _Misfit


def _found(path: str, folder: Path) -> str:
    """`path` made absolute if it exists in `folder` or in the current folder; otherwise unchanged.

    `folder` is that of the file that names the path.
    """
    if not path:
        raise _Misfit
    path = os.path.expanduser(path)
    for start in (folder, Path.cwd()):
        place = os.path.abspath(start / path)
        # A TensorFlow checkpoint is named by what its files begin with.
        named = os.path.exists(place) or os.path.exists(f"{place}.index")
        if named or glob.has_magic(path) and glob.glob(place, recursive=True):
            return place
    return path


def _expected(hint: Any) -> str:
    """The hint in words."""
    origin, members = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return "a path" if members[1] == PATH else f"{_expected(members[0])} {members[1]}"
    if origin in _UNIONS:
        return " or ".join(_expected(member) for member in members)
    if origin is tuple:
        return f"a list, each {_expected(members[0])}"
    if origin is dict:
        return f"a section of names, each with {_expected(members[1])}"
    if origin is Literal:
        return " or ".join(members)
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    return words.get(hint, "null")


def _told(value: object) -> str:
    """The value, with its kind where it could be mistaken, short enough for one line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    kinds: dict[type, str] = {str: "the text ", list: "the list ", dict: "the section "}
    return kinds.get(type(value), "") + (
        text if len(text) <= _NAME_SHOWN else f"{text[:_NAME_SHOWN]}…"
    )
