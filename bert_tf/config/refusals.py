"""Pydantic's errors as one sentence, with the key and the place where it was set."""

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import ValidationError

from bert_tf.config.section import Section
from bert_tf.config.yaml_files import Keys

_SHOWN = 60
# Kinds of errors whose messages in pydantic mention Python, or things that a file does not have.
_WORDS = {
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping",
    "float_type": "must be a number",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "int_type": "must be a whole number",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:.15g}",
    "model_type": "must be a section",
    "tuple_type": "must be a list",
    "too_long": "must have at most {max_length} items",
    "too_short": "must not be empty",
    "string_pattern_mismatch": "must be a name such as package.module:Name",
    "string_too_short": "must not be empty",
}


def mistake(
    error: ValidationError, section: type[Section], values: Any, within: Keys = ()
) -> tuple[Keys, str]:
    """The keys and a sentence of the first mistake in `values`; unknown keys come first."""
    errors = error.errors(include_url=False)
    unknown = [each for each in errors if each["type"] == "extra_forbidden"]
    first = (unknown or errors)[0]
    keys = _keys_in(values, first["loc"])
    if unknown:
        nearest = ".".join((*within, *_nearest(keys, list(_valid_keys(section)))))
        name = ".".join((*within, *keys))[:_SHOWN]
        return keys, f"unknown key {name!r}; the nearest valid key is {nearest}"
    if first["type"] == "missing":
        return keys, f"missing key {'.'.join((*within, *map(str, first['loc'])))}; add it"
    if "error" in first.get("ctx", {}):  # a rule on several keys
        return keys, str(first["ctx"]["error"])
    ways = closest([each for each in errors if _keys_in(values, each["loc"])[:2] == keys[:2]])
    name = ".".join((*within, *_keys_in(values, ways[0]["loc"])))[:_SHOWN]
    return keys, sentence(ways, name)


def sentence(errors: Sequence[Any], name: str) -> str:
    """What is wrong with one value, by pydantic's errors about it: "name must be …, got …"."""
    expected = " or ".join(dict.fromkeys(map(_expected, errors))).replace(" or must be ", " or ")
    got = json.dumps(errors[0]["input"], ensure_ascii=False, default=repr)
    return f"{name} {expected}, got {got if len(got) <= _SHOWN else f'{got[:_SHOWN]}…'}"


def closest(errors: Sequence[Any]) -> list[Any]:
    """The errors about the types that a value comes closest to."""
    depth = max(len(each["loc"]) for each in errors)
    return [each for each in errors if len(each["loc"]) == depth]


def _keys_in(values: Any, loc: tuple[int | str, ...]) -> Keys:
    """The part of a location of pydantic that is in `values`; the rest names members of unions."""
    keys = []
    for part in loc:
        in_list = isinstance(values, list) and isinstance(part, int) and part < len(values)
        if in_list or isinstance(values, dict) and part in values:
            values = values[part]
            keys.append(str(part))
    return tuple(keys)


def _expected(error: Any) -> str:
    """What pydantic expects, as in "must be greater than 0"."""
    words = _WORDS.get(error["type"], "").format(**error.get("ctx", {}))
    return words or re.sub(r"^\w+ should ", "must ", error["msg"])


def _valid_keys(section: type[Section], keys: Keys = ()) -> Iterator[Keys]:
    for name, field in section.model_fields.items():
        yield (*keys, name)
        # An annotation with arguments is a section that may be null.
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, Section):
                yield from _valid_keys(kind, (*keys, name))


def _nearest(unknown: Keys, valid: list[Keys]) -> Keys:
    """The most similar key; the same section adds a little, and initials such as lr count too."""

    def similarity(keys: Keys) -> float:
        matcher = difflib.SequenceMatcher(None, unknown[-1][:_SHOWN], keys[-1])
        initials = "".join(word[:1] for word in keys[-1].split("_"))
        alike = 1.0 if initials == unknown[-1] else matcher.ratio()
        return alike + 0.1 * (keys[:-1] == unknown[:-1])

    return max(valid, key=similarity)
