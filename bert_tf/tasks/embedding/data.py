"""Rows of texts that an embedder learns from: groups of texts, with or without a target.

A row is one text, or an anchor and its positive, or these two and hard negatives.
"""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bert_tf.data.batching import GroupedRows
from bert_tf.data.columns import Columns, Target
from bert_tf.data.targets import class_names, finite_number
from bert_tf.errors import UserError
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.evaluation import Found
from bert_tf.tasks.embedding.losses import Form
from bert_tf.tasks.embedding.pooling import POOLING_MASK


def form_of(rows: Columns) -> Form:
    """The form of rows: the kind of their targets, if any; see `EmbeddingLoss`."""
    if rows.targets is None:
        return "texts"
    if len(rows.values) == 2:
        return "scores"
    is_vector = rows.targets[0] is None or isinstance(rows.targets[0], np.ndarray | list | tuple)
    return "vectors" if is_vector else "labels"


@dataclasses.dataclass(frozen=True)
class EmbeddingTarget(Target):
    """A score of a pair of texts, a label, or the teacher's vector [width] of a text."""

    width: int = 0
    is_optional: ClassVar[bool] = True

    def is_in(self, rows: Columns) -> bool:
        return rows.targets is not None or len(rows.values) > 1  # an anchor has its positive

    def checked(self, rows: Columns) -> list[Any]:
        targets, form = rows.known_targets(), form_of(rows)
        if len(rows.values) > 2:
            raise UserError(
                f"rows of {len(rows.values)} texts take no targets: they are an anchor, its "
                "positive and negatives; remove y, or give two columns with scores"
            )
        if form == "scores":
            return [finite_number(v, rows.at(row, "score")) for row, v in enumerate(targets)]
        if form == "labels":
            return list(class_names(targets, lambda row: rows.at(row, "label")))
        for row, vector in enumerate(targets):
            place = f"{rows.at(row, 'vector')} of the teacher"
            if np.shape(vector) != (self.width,):
                raise UserError(
                    f"{place} has the shape {list(np.shape(vector))}, but the vectors of this "
                    f"model have {self.width} dimensions; choose a teacher of that width"
                )
            if not np.isfinite(np.asarray(vector, np.float32)).all():
                raise UserError(f"{place} contains NaN or infinity; compute it again")
        return list(targets)

    def numbers(self, rows: Columns) -> np.ndarray:
        """float32 scores, int32 classes or float32 [rows, width]; 0 for a row without a target."""
        targets, form = rows.known_targets(), form_of(rows)
        if form == "scores":
            return np.array([each or 0.0 for each in targets], np.float32)
        if form == "labels":
            number = {label: i for i, label in enumerate(dict.fromkeys(targets))}
            return np.array([number[label] for label in targets], np.int32)
        zero = np.zeros(self.width, np.float32)
        return np.array([zero if each is None else each for each in targets], np.float32)


@dataclasses.dataclass(frozen=True)
class NumberedTexts(GroupedRows):
    """Groups of texts ready for the model; each different text is encoded once. `groups` int32
    [rows, texts] are the numbers of the texts; they are also the targets if rows have none. The
    first `uncounted` tokens of each text do not count in pooling.
    """

    uncounted: int = 0

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]: tokens of all texts of each row."""
        return self.encoded.lengths[self.groups].sum(axis=1)

    def inputs(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        found = super().inputs(rows)
        if self.uncounted:
            counted = np.arange(found["input_mask"].shape[2]) >= self.uncounted
            found[POOLING_MASK] = found["input_mask"] * counted.astype(np.int32)
        return found


class Ranking(NamedTuple):
    """A search, and its results: id of a query -> id of a passage -> score, best first."""

    collection: Collection
    found: Found


def numbered(rows: Columns) -> tuple[list[str], np.ndarray]:
    """All different texts, and the groups to train on, by their numbers: int32 [rows, texts]. A
    single text without a target forms a group with itself. A labelled text forms a group with the
    next text of its class, and the last text of a class with the first.
    """
    groups = [*zip(*rows.values, strict=True)]
    texts = [*dict.fromkeys(text for group in groups for text in group)]
    number = {text: i for i, text in enumerate(texts)}
    numbers = np.array([[number[text] for text in group] for group in groups], np.int32)
    form = form_of(rows)
    if form == "labels":
        numbers = _with_partners(rows, numbers[:, 0])
    elif form == "texts" and len(rows.values) == 1:
        numbers = np.repeat(numbers, 2, axis=1)
    return texts, numbers


def _with_partners(rows: Columns, texts: np.ndarray) -> np.ndarray:
    """int32 [rows, 2]: each text with the next one of its class."""
    classes = EmbeddingTarget().numbers(rows)
    if len(set(classes.tolist())) == 1:
        raise UserError(
            f"all texts of {rows.source} have the same label; give texts with at least two labels"
        )
    partners = np.empty_like(texts)
    for label in np.unique(classes):
        of_class = np.flatnonzero(classes == label)
        different = list(dict.fromkeys(texts[of_class].tolist()))
        following = dict(zip(different, different[1:] + different[:1], strict=True))
        partners[of_class] = [following[text] for text in texts[of_class].tolist()]
    if (partners == texts).all():
        raise UserError(
            f"each label of {rows.source} has only one text; give at least two texts per label "
            "(pairs are two columns of x, not x and y)"
        )
    return np.stack([texts, partners], axis=1)


def collection_of(rows: Columns) -> Collection:
    """Rows as a search for texts that belong together; a text has the same id as a query and as a
    passage. With pairs, each anchor is a query for its positives among all texts that are not
    anchors. With labels, each text is a query for the other texts of its class.
    """
    different = dict.fromkeys(text for column in rows.values for text in column)
    texts = {str(i): text for i, text in enumerate(different)}
    number = {text: name for name, text in texts.items()}
    relevant: dict[str, dict[str, int]] = {}
    if form_of(rows) == "labels":
        labelled = [*zip(rows.values[0], rows.known_targets(), strict=True)]
        of_class: dict[str, dict[str, int]] = {}
        for text, label in labelled:
            of_class.setdefault(label, {})[number[text]] = 1
        for text, label in labelled:
            others = {name: 1 for name in of_class[label] if name != number[text]}
            if others:
                relevant.setdefault(number[text], {}).update(others)
        passages = texts
    else:
        for anchor, positive in zip(rows.values[0], rows.values[1], strict=True):
            relevant.setdefault(number[anchor], {})[number[positive]] = 1
        names = {number[text] for column in rows.values[1:] for text in column}
        passages = {name: text for name, text in texts.items() if name in names}
    if not relevant:
        raise UserError(
            f"no two texts of {rows.source} have the same label, so retrieval cannot be measured; "
            "give more texts"
        )
    return Collection(passages, {name: texts[name] for name in relevant}, relevant)


def names_of(count: int) -> tuple[str, ...]:
    """The names of the columns of rows of `count` texts: `text`, or `text_1`, `text_2`, …"""
    return ("text",) if count == 1 else tuple(f"text_{i}" for i in range(1, count + 1))
