"""Sentences with a tag on every word, or on none, from any source.

A sentence is a row of the column "words", its target the tuple of its tags, entities in IOB2. If
sentences are read in the context of their documents, `ids` name the document of each.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from bert_tf.data.arrow import DataTable
from bert_tf.data.batching import TrainingRows
from bert_tf.data.columns import Columns, GroupColumn, Target, as_list, kept, quoted
from bert_tf.data.targets import class_names, class_numbers
from bert_tf.data.tfds import load_split
from bert_tf.errors import UserError
from bert_tf.tasks.token_classification import tag_schemes
from bert_tf.tasks.token_classification.spans import SpannedWords, are_texts, checked_spans
from bert_tf.tasks.token_classification.tag_schemes import OUTSIDE, Tag, parse_tags

_SENTENCE = ("Ada", "Lovelace", "met", "Charles", "Babbage", "in", "London", ".")
WORDS = GroupColumn("words", may_be_empty=True, example=_SENTENCE)
# The label of tokens that are not classified: padding, special tokens, later pieces of a word.
IGNORED = -1
# The names that data sets of TFDS give their words, and tags of entities.
_WORDS = ("tokens", "words")
TAGS = ("ner", "ner_tags", "tags")


@dataclasses.dataclass(frozen=True)
class WordTags(Target):
    """A tag for each word of a row; or for a row that is a text, the spans of its entities. Tags
    such as S-PER, of any scheme, become IOB2. Other tags stay as they are, and so do sets of tags
    whose only prefix is I. `labels` are () before they are known.
    """

    labels: tuple[str, ...] = ()
    what: ClassVar[str] = "tags"
    plural: ClassVar[str] = "tags"
    column_names: ClassVar[tuple[str, ...]] = (*TAGS, "spans", "entities")

    def checked(self, rows: Columns) -> list:
        if are_texts(rows):
            return checked_spans(rows)
        found = []
        for row, given in enumerate(rows.known_targets()):
            place, words = rows.at(row, self.what), rows.column("words")[row]
            if isinstance(given, str | bytes | int | float):
                raise UserError(f"{place} is {quoted(given)}; give a list of tags")
            values = as_list(given, place)
            if len(values) != len(words):
                raise UserError(
                    f"{rows.where(row)} has {len(words)} words, but {len(values)} tags; give a "
                    "tag for each word"
                )
            found.append(tuple(class_names(values, f"{place}, tag {{}}".format)))
        return self._in_iob2(found) if tag_schemes.standard_prefixes(_all(found)) - {"I"} else found

    def found_in(self, rows: Columns) -> tuple[str, ...]:
        """The labels of rows. In IOB2 every type has its B and its I, even if rows lack one of
        them.
        """
        given = rows.known_targets()
        found = _all(given)
        if are_texts(rows):
            found = {OUTSIDE, *(f"B-{span.label}" for spans in given for span in spans)}
        prefixes = tag_schemes.standard_prefixes(found)
        types = {tag.type for tag in parse_tags(found).values()} - {""}
        if not types:
            raise UserError(f"{rows.source}: all tags are {OUTSIDE}; tag some entities to train")
        if prefixes:
            needed = "I" if prefixes == {"I"} else "BI"
            return (OUTSIDE, *(f"{prefix}-{kind}" for kind in sorted(types) for prefix in needed))
        if len(found) < 2:
            raise UserError(
                f"{rows.source}: only one label, {found.pop()!r}; there must be two or more"
            )
        return tuple(sorted(found))

    def numbers(self, rows: Columns) -> np.ndarray:
        """int32 [words of all rows]: classes, 0 in rows without tags, `IGNORED` for words that are
        cut. Tags of entities may be of another scheme than the labels. Texts are only checked.
        """
        if are_texts(rows):
            known = {tag.type for tag in parse_tags(self.labels).values()}
            for row, spans in enumerate(rows.known_targets()):
                for span in spans or ():
                    if span.label not in known:
                        raise self._unknown(rows.where(row), "", Tag("B", span.label))
            return np.zeros(0, np.int32)
        sentences = rows.known_targets()
        read = self._parts(sentences)
        found: list[int | None] = []
        for row, (tags, words) in enumerate(zip(sentences, rows.column("words"), strict=True)):
            if tags is None:
                found += [0] * len(words)
                continue
            numbers = tag_schemes.numbers_in(self.labels, [read[tag] for tag in tags])
            for word, (number, tag) in enumerate(zip(numbers, tags, strict=True)):
                if number is None:
                    raise self._unknown(word_place(rows, row, word), tag, read[tag])
            found += numbers
        for word in rows.cut if isinstance(rows, SpannedWords) else ():
            found[word] = IGNORED
        return np.array(found, np.int32)

    def entities(self, sentences: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """Tags as IOB2, for metrics. With parts of speech and the like, every word is an entity."""
        parts = parse_tags(self.labels).values()
        if all(tag.type and not tag.prefix for tag in parts):
            return [tuple(f"B-{tag}" for tag in tags) for tags in sentences]
        return self._in_iob2(sentences)

    def _in_iob2(self, sentences: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        read = self._parts(sentences)
        return [tag_schemes.to_iob2([read[tag] for tag in tags]) for tags in sentences]

    def _parts(self, sentences: Sequence[Sequence[str] | None]) -> dict[str, Tag]:
        """The parts of each tag; a tag that is a label is read as the labels are."""
        return parse_tags(_all(sentences)) | parse_tags(self.labels)

    def _unknown(self, place: str, tag: str, parts: Tag) -> UserError:
        what = f"the label {tag!r} is"
        if parts.prefix:
            what = f"entities of type {parts.type!r} are"
        return UserError(
            f"{place}: {what} not in the training data; the labels are {', '.join(self.labels)}; "
            "add examples to the training data, or tag the words O"
        )

    def encoded(self, y: tf.RaggedTensor) -> tf.RaggedTensor:
        return y.with_values(class_numbers(y.values, self.labels))


def _all(sentences: Sequence[Sequence[str] | None]) -> set[str]:
    return {tag for tags in sentences for tag in tags or ()}


def word_place(rows: Columns, row: int, word: int) -> str:
    """The place of a word for a message; in a file with lines, each word is a line."""
    if rows.places is not None and rows.unit == "line":
        return f"{rows.source}, line {rows.places[row] + word}"
    return f"{rows.where(row)}, word {word}"


def texts_of(rows: Columns) -> Sequence[Sequence[str]]:
    """The words of each text: of a sentence, or of all sentences of a document."""
    sentences = rows.column("words")
    if rows.ids is None:
        return kept(sentences)
    groups = itertools.groupby(zip(rows.ids, sentences, strict=True), key=lambda each: each[0])
    return [[word for _, words in group for word in words] for _, group in groups]


def ragged_words(texts: Sequence[Sequence[str]]) -> tf.RaggedTensor:
    """Texts given as words: RaggedTensor string [batch, (words)]."""
    words = tf.constant([word for text in texts for word in text], tf.string)
    return tf.RaggedTensor.from_row_lengths(words, [*map(len, texts)])


class TaggedWindows(TrainingRows):
    """Windows whose tokens have labels, and maybe weights, under these names in `encoded`."""

    def take(self, rows: np.ndarray) -> tuple:
        inputs = self.encoded.take(rows)
        return inputs, *(inputs.pop(name) for name in ("labels", "weights") if name in inputs)


def in_scheme(rows: Columns, lenient_tags: bool = False) -> Columns:
    """The rows of a file, checked; `lenient_tags` are read as conlleval does (see `Tag.begins`)."""
    if not len(rows):
        raise UserError(f"{rows.source} has no sentences")
    read = parse_tags(_all(rows.targets or ()))
    tagged = [[read[tag] for tag in tags] for tags in rows.targets or ()]
    found = None if lenient_tags else tag_schemes.find_violation(tagged)
    if found is not None:
        *place, why = found
        raise UserError(
            f"{word_place(rows, *place)}: {why}; correct it, or set data.lenient_tags: true, "
            "so that such a tag begins an entity, as in conlleval"
        )
    return rows.checked([WORDS], WordTags())


def read_tfds_tags(name: str, split: str, lenient_tags: bool = False) -> Columns:
    """The sentences of a split of TensorFlow Datasets, such as conll2003; without documents."""
    rows, features = load_split(name, split)
    source = f"TFDS {name}, split {split}"
    words, tags = (_feature(features, names, source) for names in (_WORDS, TAGS))
    classes = getattr(getattr(features[tags], "feature", None), "names", None) or ()
    if not classes:
        raise UserError(f"{source}: the feature {tags!r} does not contain tags such as O, B-…, I-…")
    kept = [row for row in rows if len(row[words])]
    sentences = Columns(
        ("words",),
        ([[word.decode("utf-8", "replace") for word in row[words]] for row in kept],),
        [tuple(classes[tag] for tag in row[tags]) for row in kept],
        source,
        range(1, len(kept) + 1),
        unit="row",
        path=Path(name) / split,
    )
    return in_scheme(sentences, lenient_tags)


def of_table(table: DataTable, path: Path, lenient_tags: bool = False) -> Columns:
    """The sentences of a table of Arrow: `tokens` or `words`, and `ner_tags`, `ner` or `tags`."""
    words, tags = table.first_of(_WORDS) or _WORDS[0], table.first_of(TAGS)
    table.check_texts([words], rank=2)
    column = table.column(words)
    filled = [row for row, each in enumerate(column) if each is None or len(each)]
    if len(filled) < len(column):
        table = dataclasses.replace(table, data=table.data.take(filled))
    values, places = (table.column(words),), range(len(table.data))
    rows = Columns(("words",), values, None, table.source, places, unit="row", path=path)
    if tags is None:
        return in_scheme(rows)
    if not table.classes(tags):
        table.check_texts([tags], rank=2)
    targets = [*table.column(tags)]
    if all(each is None for each in targets):
        return in_scheme(rows)
    for row, each in enumerate(targets):
        if each is None or None in each:
            raise UserError(f"{rows.at(row, tags)} is missing or incomplete; add all tags")
    return in_scheme(dataclasses.replace(rows, targets=targets), lenient_tags)


def _feature(features: Any, names: tuple[str, ...], source: str) -> str:
    for name in names:
        if name in features:
            return name
    raise UserError(
        f"{source}: no feature {' or '.join(names)}; the features are {', '.join(features)}"
    )
