"""Tags of words in any spelling and scheme, and the entities that they make.

A tag is O, or a prefix and a type, as in B-PER. The schemes differ in where a prefix stands:

| scheme | first word | further words | last word | only word |
|---|---|---|---|---|
| IOB1 | I; B right after an entity of the same type | I | I | I |
| IOB2 | B | I | I | B |
| BIOES | B | I | E | S |
| BILOU | B | I | L | U |
| BMES | B | M | E | S |

Checkpoints also have tags such as B_PER, b-per, PER-B and B, and tags without prefixes, such as PER
or NOUN. Adjacent words with the same tag without a prefix are one entity.
"""

import functools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

OUTSIDE = "O"
_FIRST = ("B", "S", "U")
# The prefixes of an entity's only word, its first word, its last word, and any other word.
_SCHEMES = {"IOB1": "IIII", "IOB2": "BBII", "BIOES": "SBEI", "BILOU": "UBLI"}
# The prefixes that mean the same as each prefix of BIOES, the best first.
_FITTING = {"S": "SUB", "B": "B", "E": "EL", "I": "I", "": ""}
# The forms of tags with a prefix. Tags of the first form become IOB2, the others do not change.
_STANDARD = re.compile("(?P<prefix>[BIESLUM])-(?P<type>.+)")
_FORMS = (
    re.compile("(?P<prefix>[BIESLUM])(?:[-_](?P<type>.+))?", re.IGNORECASE),
    re.compile("(?P<type>.+)[-_](?P<prefix>[BIESLUM])", re.IGNORECASE),
)
# The type of entities whose tags are prefixes alone, as in seqeval.
_NO_TYPE = "_"


class Tag(NamedTuple):
    """A tag in its two parts: both are "" for O, and the prefix is "" for a tag without one."""

    prefix: str
    type: str

    def begins(self, before: "Tag") -> bool:
        """Whether an entity begins here; `before` is the previous tag. This is the rule of
        conlleval and seqeval for any mixture of B, I, E and S. Here L and U count as E and S, and
        no prefix as I. A tag that does not continue an entity begins one.
        """
        open_before = before.type if before.prefix in ("B", "I", "") else ""
        return bool(self.type) and (self.prefix in _FIRST or self.type != open_before)


NO_TAG = Tag("", "")


def parse_tags(tags: Iterable[str]) -> dict[str, Tag]:
    """The parts of each tag of a set, {"B_PER": Tag("B", "PER")}. The whole set decides whether its
    tags have prefixes: they do if all of them, except for the outside tag, fit one form with a
    prefix, or if some have the form B-PER or I-PER.
    """
    names = [*dict.fromkeys(tags)]
    outside = OUTSIDE if OUTSIDE in names else OUTSIDE.lower()
    parts = {name: NO_TAG if name == outside else Tag("", name) for name in names}
    inside = [name for name in names if name != outside]
    for form in _FORMS:
        found = _matches(form, inside)
        # Without a type, S and U may be names, for instance of languages.
        begin = [t.prefix in ("BI" if t.type == _NO_TYPE else "BISU") for t in found.values()]
        if len(found) == len(inside) and any(begin):
            return parts | found
    found = _matches(_STANDARD, inside)
    return parts | found if any(tag.prefix in "BI" for tag in found.values()) else parts


def _matches(form: re.Pattern[str], tags: Sequence[str]) -> dict[str, Tag]:
    found = {}
    for name in tags:
        if match := form.fullmatch(name):
            prefix = match["prefix"].upper().replace("M", "I")
            found[name] = Tag(prefix, match["type"] or _NO_TYPE)
    return found


def standard_prefixes(tags: Iterable[str]) -> set[str]:
    """The prefixes of tags that are all O or of the form B-PER; none if one is of another form."""
    found = [_STANDARD.fullmatch(tag) for tag in {*tags} - {OUTSIDE}]
    return {match["prefix"] for match in found if match} if all(found) else set()


def _in_scheme(tags: Sequence[Tag], scheme: str) -> list[Tag]:
    """The tags of a sentence, of any scheme, in one of `_SCHEMES`."""
    converted = []
    for before, tag, after in zip((NO_TAG, *tags), tags, (*tags[1:], NO_TAG), strict=False):
        begins, ends = tag.begins(before), not after.type or after.begins(tag)
        prefix = _SCHEMES[scheme][2 * (not begins) + (not ends)]
        if scheme == "IOB1" and begins and before.type == tag.type:
            prefix = "B"
        converted.append(Tag(prefix, tag.type) if tag.type else tag)
    return converted


def to_iob2(tags: Sequence[Tag]) -> tuple[str, ...]:
    """The tags of a sentence, of any scheme, as IOB2."""
    return tuple(map(_name, _in_scheme(tags, "IOB2")))


def numbers_in(labels: Sequence[str], tags: Sequence[Tag]) -> list[int | None]:
    """The number of the label that fits each tag, of any scheme, best: the same type, and the same
    place in the entity if there is such a label. None where no label has the type.
    """
    return [_number_of(tuple(labels), tag) for tag in _in_scheme(tags, "BIOES")]


@functools.lru_cache(2**12)
def _number_of(labels: tuple[str, ...], tag: Tag) -> int | None:
    places = {each: place for place, each in enumerate(parse_tags(labels).values())}
    choices = [Tag(prefix, tag.type) for prefix in (*_FITTING[tag.prefix], *"IBESUL", "")]
    return next((places[each] for each in choices if each in places), None)


def find_violation(sentences: Sequence[Sequence[Tag]]) -> tuple[int, int, str] | None:
    """The sentence and the word of the first tag that breaks the scheme of the others, and why. If
    the tags have E or S, the scheme is BIOES; with L or U it is BILOU. Otherwise it is IOB1 or
    IOB2, whichever has fewer violations. Either all tags have a prefix, or none has.
    """
    prefixes = {tag.prefix for tags in sentences for tag in tags if tag.type}
    if prefixes == {""}:
        return None
    candidates = ["IOB2", "IOB1"]
    if prefixes & {*"ESLU"}:
        candidates = ["BIOES" if prefixes & {*"ES"} else "BILOU"]
    violations = min([_violations(sentences, each) for each in candidates], key=len)
    return violations[0] if violations else None


def _violations(sentences: Sequence[Sequence[Tag]], scheme: str) -> list[tuple[int, int, str]]:
    found = []
    for number, tags in enumerate(sentences):
        words = zip((NO_TAG, *tags), tags, _in_scheme(tags, scheme), strict=False)
        for word, (before, tag, expected) in enumerate(words):
            if tag != expected:
                why = f"{_name(tag)} after {_name(before)}, but the tags are {scheme}"
                found.append((number, word, f"{why}, with {_name(expected)} there"))
    return found


def _name(tag: Tag) -> str:
    return f"{tag.prefix}-{tag.type}".removeprefix("-") or OUTSIDE
