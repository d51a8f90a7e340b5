"""Pictures of models that score several texts, each together with the same first text."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.asking.row_files import Row, list_of, text_of
from bert_tf.data.columns import Columns
from bert_tf.interpret import sections
from bert_tf.interpret.importance import Inputs
from bert_tf.interpret.looks import Look, Mark, PageSection, SeenInput
from bert_tf.interpret.pictures import Pictures
from bert_tf.interpret.projection import pooled, row_vectors
from bert_tf.interpret.subject import Subject, without_padding
from bert_tf.text import Preprocessor


class DevGroups(NamedTuple):
    """Some rows of the dev data.

    Attributes:
        rows: the rows.
        scores: what `infer` of the model returns.
        targets: of the encoded rows.
        vectors: float32 [pairs, hidden], what the head reads.
        texts: of each pair.
    """

    rows: Columns
    scores: Any
    targets: np.ndarray
    vectors: np.ndarray
    texts: list[str]


class GroupPictures(Pictures):
    """What all of them share."""

    def __init__(self, subject: Subject):
        super().__init__(subject)
        self.accepted = (subject.model.input_names,)
        self._preprocess = Preprocessor(subject.tokenizer, subject.max_length, padding="batch")

    def look(self, row: Row) -> Look:
        # The text with the highest score comes first.
        subject, (first, others) = self.subject, self.accepted[0]
        text, group = text_of(row, first), list_of(row, others)
        features = self._preprocess((tf.constant([text] * len(group)), tf.constant(group)))
        scores = self._scores(features).numpy()
        order = np.argsort(-scores, kind="stable")
        seen = [
            self._seen(f"{i + 1}: {group[i]}", without_padding(features, i)) for i in order.tolist()
        ]
        encoded = subject.encoder.encode(features, training=False)
        vectors = pooled(subject.encoder, encoded, features["input_mask"]).numpy()
        marks = [
            Mark(sections.shortened(each), vector)
            for each, vector in zip(group, vectors, strict=True)
        ]
        names = [f"{i}: {each}" for i, each in enumerate(group, start=1)]
        return Look((text,), self.answer(names, scores), tuple(seen), tuple(marks))

    def dev(self, rows: int, marks: Sequence[Mark]) -> list[PageSection]:
        subject = self.subject
        everything: Columns = subject.read_dev()
        chosen = everything.take(sections.draw(len(everything), rows).tolist())
        examples: Any = subject.model.examples(chosen)
        encoded = examples.encoded
        vectors = row_vectors(subject.encoder, pooled, encoded.take, encoded.lengths)
        count = len(encoded.lengths)
        texts = [subject.read_back(encoded.take(np.array([i]))) for i in range(count)]
        scores = subject.model.infer(chosen)
        return self.of_dev(DevGroups(chosen, scores, examples.targets, vectors, texts), marks)

    @abstractmethod
    def answer(self, names: Sequence[str], scores: np.ndarray) -> Markup:
        """What the model says of a group, float32 [group], whose texts have these names."""

    @abstractmethod
    def of_dev(self, groups: DevGroups, marks: Sequence[Mark]) -> list[PageSection]:
        """The pictures of some dev data."""

    def _seen(self, title: str, inputs: Inputs) -> SeenInput:
        """The first text with one other, and what its tokens add to its score."""
        subject = self.subject
        what = f"the score of this {self.accepted[0][1][:-1]}"
        explained = subject.explain([what], inputs, lambda pairs: self._scores(pairs)[:, None])
        return subject.seen(title, inputs, explained)

    def _scores(self, pairs: Inputs) -> tf.Tensor:
        """float32 [pairs]: the score of each, which does not depend on the others."""
        alone = {name: values[:, None] for name, values in pairs.items()}
        return self.subject.model(alone, training=False)[:, 0]
