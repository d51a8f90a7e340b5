"""Entities as spans of characters, and the words and tags that they become."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.asking import encoded, plain
from bert_tf.data.columns import Columns, TextColumn, as_list, is_text, quoted
from bert_tf.data.targets import class_names
from bert_tf.errors import UserError
from bert_tf.tasks.token_classification.tag_schemes import OUTSIDE
from bert_tf.text import Tokenizer
from bert_tf.text.words import split_words

TEXT = TextColumn("text", example="Ada Lovelace met Charles Babbage in London.")
# How many texts are cut into words at a time.
_CHUNK = 256
# How many words a message shows.
_SHOWN = 3


class Span(NamedTuple):
    """An entity: the characters from `start` to `end`, which is exclusive, and its type."""

    start: int
    end: int
    label: str


@dataclasses.dataclass(frozen=True)
class SpannedWords(Columns):
    """The words of texts, with the tags in IOB2 that follow from the spans. `cut` describes each
    word inside of which a span begins or ends, by its place among all words. `entities` are the
    tags without such spans, and `missed` are the types of such spans.
    """

    cut: Mapping[int, str] = dataclasses.field(default_factory=dict)
    entities: Sequence[tuple[str, ...]] = ()
    missed: Sequence[str] = ()

    def cut_words(self) -> str:
        shown = ", ".join([*self.cut.values()][:_SHOWN]) + ", …" * (len(self.cut) > _SHOWN)
        return f"words inside of which spans begin or end ({len(self.cut)}): {shown}"


def are_texts(rows: Columns) -> bool:
    """Whether rows are texts, with spans if they have targets, and not words with tags."""
    return rows.names == (TEXT.name,)


def checked_spans(rows: Columns) -> list[tuple[Span, ...]]:
    """The spans of each text, in their order in it."""
    found = []
    for row, given in enumerate(rows.known_targets("spans")):
        text, place = plain(rows.column(TEXT.name)[row]), rows.where(row)
        if is_text(given) or not isinstance(given, Sequence | np.ndarray):
            raise UserError(f"{place}: the spans of {quoted(text)} are {quoted(given)}, not a list")
        spans = sorted(_span(each, text, place) for each in as_list(given, place))
        for one, other in zip(spans, spans[1:], strict=False):
            if other.start < one.end:
                raise UserError(
                    f"{place}: the spans {one.start} to {one.end} and {other.start} to {other.end} "
                    f"of {quoted(text)} overlap; keep one of them"
                )
        found.append(tuple(spans))
    return found


def _span(given: Any, text: str, place: str) -> Span:
    if not isinstance(given, Mapping) or given.keys() != {*Span._fields}:
        keys = ", ".join(map(str, given)) if isinstance(given, Mapping) else quoted(given)
        raise UserError(
            f"{place}: a span of {quoted(text)} has the keys start, end and label, not {keys}; "
            "where words have tags, give the words of a row in a list, not in a text"
        )
    start, end, label = (given[name] for name in Span._fields)
    why = ""
    if not {type(start), type(end)} <= {int, np.int32, np.int64}:
        why = "has no whole numbers of characters"
    elif not 0 <= start < end <= len(text):
        why = f"is not in the text, which has {len(text)} characters"
    elif not str(label).strip():
        why = "has no label"
    if why:
        raise UserError(f"{place}: the span {start} to {end} of {quoted(text)} {why}; correct it")
    (name,) = class_names([label], lambda _: f"{place}: the label of {text[start:end]!r}")
    return Span(int(start), int(end), name)


def in_words(rows: Columns, tokenizer: Tokenizer, split_punctuation: bool) -> SpannedWords:
    """Texts, with checked spans or without targets, as words with tags."""
    texts, spans = rows.column(TEXT.name), rows.targets or [None] * len(rows)
    bounds: list[tuple[list[int], list[int]]] = []
    for first in range(0, len(texts), _CHUNK):
        chunk = tf.constant([*map(encoded, texts[first : first + _CHUNK])], tf.string)
        _, starts, ends = split_words(chunk, tokenizer, split_punctuation)
        bounds += zip(starts.to_list(), ends.to_list(), strict=True)
    words: list[list[str]] = []
    tags: list[Any] = []
    entities: list[tuple[str, ...]] = []
    missed: list[str] = []
    cut: dict[int, str] = {}
    before = 0
    for row, of_row in enumerate(bounds):
        text, place = texts[row], rows.where(row)
        # The number of characters before each byte, and before the end.
        is_first_byte = np.frombuffer(encoded(text), np.uint8) & 0xC0 != 0x80
        characters = np.concatenate([[0], np.cumsum(is_first_byte)])
        starts, ends = (characters[np.array(each, int)] for each in of_row)
        words.append([text[start:end] for start, end in zip(starts, ends, strict=True)])
        of_words, of_entities = [OUTSIDE] * len(starts), [OUTSIDE] * len(starts)
        for start, end, label in spans[row] or ():
            first, last = np.searchsorted(ends, start, "right"), np.searchsorted(starts, end)
            marked = quoted(text[start:end])
            if first == last:
                raise UserError(
                    f"{place}: the span {marked} of {quoted(text)} has no word; remove it"
                )
            of_span = [f"B-{label}", *[f"I-{label}"] * int(last - first - 1)]
            of_words[first:last] = of_span
            parts = [w for w in range(first, last) if starts[w] < start or ends[w] > end]
            for word in parts:
                cut[before + word] = f"{place}: {quoted(words[row][word])} ({label} {marked})"
            if parts:
                missed.append(label)
            else:
                of_entities[first:last] = of_span
        tags.append(None if spans[row] is None else tuple(of_words))
        entities.append(tuple(of_entities))
        before += len(starts)
    fields = {field.name: getattr(rows, field.name) for field in dataclasses.fields(Columns)}
    fields |= {"names": ("words",), "values": (words,), "targets": rows.targets and tags}
    return SpannedWords(**fields, cut=cut, entities=entities, missed=missed)
