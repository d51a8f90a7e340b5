"""What pydantic refuses, as one sentence with the key and the place where it was set."""

import difflib
import json
import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import ValidationError

from bert_tf.config.section import Section
from bert_tf.config.yaml_files import Keys, Tree
from bert_tf.errors import UserError

_SHOWN = 60
# Kinds of errors for which pydantic's own words speak of Python, or of more than the file has.
_WORDS = {
    "bool_type": "must be true or false",
    "dict_type": "must be a section",
    "model_type": "must be a section",
    "tuple_type": "must be a list",
    "too_long": "must have at most {max_length} items",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
}


def refusal(error: ValidationError, section: type[Section], tree: Tree) -> UserError:
    """The first mistake that pydantic found in `tree` as a file of `section`.

    Unknown keys come before other mistakes. Where a value may be of several types, the sentence
    names those that it comes closest to.
    """
    errors = error.errors(include_url=False)
    unknown = [each for each in errors if each["type"] == "extra_forbidden"]
    first = (unknown or errors)[0]
    keys = _keys_in(tree.values, first["loc"])
    name, place = ".".join(keys)[:_SHOWN], tree.place(keys)
    if unknown:
        nearest = ".".join(_nearest(keys, list(_valid_keys(section))))
        return UserError(f"{place}: unknown key {name!r}; the nearest valid key is {nearest}")
    if first["type"] == "missing":
        return UserError(f"{place}: missing key {'.'.join(map(str, first['loc']))}; add it")
    if "error" in first.get("ctx", {}):  # a rule on several keys
        return UserError(f"{place}: {first['ctx']['error']}")
    ways = [each for each in errors if each["loc"][:2] == first["loc"][:2]]
    ways = [each for each in ways if len(each["loc"]) == max(len(e["loc"]) for e in ways)]
    name = ".".join(_keys_in(tree.values, ways[0]["loc"]))[:_SHOWN]
    expected = " or ".join(dict.fromkeys(map(_expected, ways))).replace(" or must be ", " or ")
    got = json.dumps(ways[0]["input"], ensure_ascii=False)
    shown = got if len(got) <= _SHOWN else f"{got[:_SHOWN]}…"
    return UserError(f"{place}: {name} {expected}, got {shown}")


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
        for kind in (
            field.annotation,
            *get_args(field.annotation),
        ):  # or a section that may be null
            if isinstance(kind, type) and issubclass(kind, Section):
                yield from _valid_keys(kind, (*keys, name))


def _nearest(unknown: Keys, valid: list[Keys]) -> Keys:
    """The most similar name, where one of the same section counts for a little more.

    Initials are as good as the name: lr is learning_rate.
    """

    def similarity(keys: Keys) -> float:
        matcher = difflib.SequenceMatcher(None, unknown[-1][:_SHOWN], keys[-1])
        initials = "".join(word[:1] for word in keys[-1].split("_"))
        alike = 1.0 if initials == unknown[-1] else matcher.ratio()
        return alike + 0.1 * (keys[:-1] == unknown[:-1])

    return max(valid, key=similarity)
