"""Schemes for tags of named entities: recognized, checked, and turned into IOB2.

A tag is O, or a prefix and a type, as in B-PER. The schemes differ in where a prefix stands:

| scheme | first word | further words | last word | only word |
|---|---|---|---|---|
| IOB1 | I; B right after an entity of the same type | I | I | I |
| IOB2 | B | I | I | B |
| BIOES | B | I | E | S |
| BILOU | B | I | L | U |
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

OUTSIDE = "O"
_PREFIXES = "BIESLU"
# Prefixes of first words, and of last words of several.
_FIRST, _LAST = "BSU", "EL"


class Tag(NamedTuple):
    """A tag in its two parts; both are "" for O.

    >>> Tag("I", "PER").begins(before=Tag("B", "PER"))
    False
    >>> Tag("I", "PER").begins(before=Tag("", ""))
    True
    """

    prefix: str
    type: str

    def begins(self, before: "Tag") -> bool:
        """Whether an entity begins here; `before` is the previous tag.

        This is the rule of conlleval and seqeval for any mixture of B, I, E and S. They do not know
        L and U, which count as E and S here. A tag that does not continue an entity begins one,
        whatever its prefix.
        """
        open_before = before.type if before.prefix in "BI" else ""
        return bool(self.type) and (self.prefix in _FIRST or self.type != open_before)


NO_TAG = Tag("", "")


def parse(tag: str) -> Tag | None:
    """The parts of a tag; None for a text that is a tag in no scheme.

    >>> parse("B-PER"), parse("O"), parse("PER")
    (Tag(prefix='B', type='PER'), Tag(prefix='', type=''), None)
    """
    if tag == OUTSIDE:
        return NO_TAG
    prefix, dash, kind = tag.partition("-")
    known = len(prefix) == 1 and prefix in _PREFIXES and dash and kind
    return Tag(prefix, kind) if known else None


def tag_of(tag: str) -> Tag:
    """The parts of a tag. Raises ValueError for a text that is a tag in no scheme; see `parse`.

    >>> tag_of("B-PER")
    Tag(prefix='B', type='PER')
    """
    parts = parse(tag)
    if parts is None:
        raise ValueError(f"{tag} is not the tag of an entity")
    return parts


def are_tags(labels: Iterable[str]) -> bool:
    """Whether labels are tags of entities.

    >>> are_tags(["O", "B-PER"]), are_tags(["NOUN"])
    (True, False)
    """
    return all(parse(label) is not None for label in labels)


def to_iob2(tags: Sequence[Tag]) -> tuple[str, ...]:
    """The tags of a sentence, of any scheme, as IOB2.

    >>> to_iob2([tag_of(tag) for tag in ("S-LOC", "O", "B-PER", "E-PER")])
    ('B-LOC', 'O', 'B-PER', 'I-PER')
    """
    converted = []
    for before, tag in zip((NO_TAG, *tags), tags, strict=False):
        prefix = "B" if tag.begins(before) else "I"
        converted.append(f"{prefix}-{tag.type}" if tag.type else OUTSIDE)
    return tuple(converted)


class Violation(NamedTuple):
    """A tag in a place that its scheme does not allow.

    Attributes:
        sentence, word: the place, counted from 0.
        why: the reason, for a message.
    """

    sentence: int
    word: int
    why: str


def find_violation(sentences: Sequence[Sequence[Tag]]) -> Violation | None:
    """The first tag that breaks the scheme of the other tags; None if there is none.

    With E or S among the tags the scheme is BIOES, with L or U it is BILOU. Otherwise it is the
    one of IOB1 and IOB2 with fewer violations.

    >>> good, bad = ("B-PER", "I-PER"), ("O", "I-LOC")
    >>> violation = find_violation([[tag_of(tag) for tag in tags] for tags in (good, good, bad)])
    >>> violation.sentence, violation.word
    (2, 1)
    """
    prefixes = {tag.prefix for tags in sentences for tag in tags}
    if prefixes & set("ES"):
        candidates = {"BIOES": _in_bioes(sentences, "ES")}
    elif prefixes & set("LU"):
        candidates = {"BILOU": _in_bioes(sentences, "LU")}
    else:
        candidates = {"IOB2": _in_iob(sentences, "I"), "IOB1": _in_iob(sentences, "B")}
    scheme, violations = min(candidates.items(), key=lambda each: len(each[1]))
    if not violations:
        return None
    first = violations[0]
    return first._replace(why=f"{first.why}, but the tags are {scheme}")


def _in_iob(sentences: Sequence[Sequence[Tag]], continuing: str) -> list[Violation]:
    """Words with the prefix `continuing` that do not follow a word of the same type."""
    return [
        Violation(number, word, f"{_name(tag)} after {_name(before)}")
        for number, tags in enumerate(sentences)
        for word, (before, tag) in enumerate(zip((NO_TAG, *tags), tags, strict=False))
        if tag.prefix == continuing and tag.type != before.type
    ]


def _in_bioes(sentences: Sequence[Sequence[Tag]], ends: str) -> list[Violation]:
    """Words that no entity can have there; `ends` are the prefixes of last and only words."""
    violations = []
    for number, tags in enumerate(sentences):
        pairs = zip((NO_TAG, *tags), (*tags, NO_TAG), strict=True)
        for word, (before, tag) in enumerate(pairs):
            is_open, continues = before.prefix in ("B", "I"), tag.prefix in ("I", *_LAST)
            if tag.prefix in set("ESLU") - set(ends):
                why = f"{_name(tag)} among tags with {ends[0]} or {ends[1]}"
            elif is_open != continues or is_open and before.type != tag.type:
                at_end = f"{_name(before)} at the end of a sentence"
                why = at_end if word == len(tags) else f"{_name(tag)} after {_name(before)}"
            else:
                continue
            violations.append(Violation(number, min(word, len(tags) - 1), why))
    return violations


def _name(tag: Tag) -> str:
    return f"{tag.prefix}-{tag.type}" if tag.type else OUTSIDE
