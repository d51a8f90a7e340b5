"""Pictures of models on one text or two, and of models that score the texts of a group."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.asking.row_files import Row, list_of, text_of
from bert_tf.data.columns import Columns
from bert_tf.interpret import sections
from bert_tf.interpret.importance import Importances, Inputs, log_odds
from bert_tf.interpret.looks import Explanation, Look, Mark, PageSection
from bert_tf.interpret.pictures import Pictures
from bert_tf.interpret.projection import pooled, row_vectors
from bert_tf.interpret.subject import Subject, without_padding

NOTE = "Each point is a text of the dev data: the pooled vector, which the head reads."


class DevRows(NamedTuple):
    """Some rows of the dev data; each is one point, or a point for each text of its group."""

    data: Columns
    outputs: Any  # of `infer`
    targets: np.ndarray  # [rows, ...], what is given
    vectors: np.ndarray  # float32 [points, hidden], what the head reads
    texts: list[str]  # of each point


class PooledPictures(Pictures):
    """Pictures of a model whose head reads the pooled output; with runs, it overrides `of_dev`."""

    def __init__(self, subject: Subject):
        super().__init__(subject)
        self.accepted = (subject.model.input_names,)
        self._preprocess = subject.model.preprocessor()

    def dev(self, rows: int, marks: Sequence[Mark]) -> list[PageSection]:
        subject = self.subject
        everything: Columns = subject.read_dev()
        chosen = everything.take(sections.draw(len(everything), rows).tolist())
        examples: Any = subject.model.examples(chosen)
        encoded = examples.encoded
        vectors = row_vectors(subject.encoder, pooled, encoded.take, encoded.lengths)
        points = range(len(encoded.lengths))
        texts = [subject.read_back(encoded.take(np.array([i]))) for i in points]
        outputs = subject.model.infer(chosen)
        return self.of_dev(DevRows(chosen, outputs, examples.targets, vectors, texts), marks)

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[PageSection]:
        raise NotImplementedError

    def _vectors(self, inputs: Inputs) -> np.ndarray:
        encoder = self.subject.encoder
        encoded = encoder.encode(inputs, training=False)
        return pooled(encoder, encoded, inputs["input_mask"]).numpy()


class TextPictures(PooledPictures):
    """Pictures of a model on one text or two."""

    def look(self, row: Row) -> Look:
        texts = [text_of(row, name) for name in self.accepted[0]]
        inputs = self._preprocess(tuple(tf.constant([text]) for text in texts))
        answer, explained = self.answer(inputs, self.subject.model(inputs, training=False))
        seen = self.seen_of("", inputs, explained, *texts)
        heading = tuple(map(sections.shortened, texts))
        return Look(heading, answer, (seen,), (Mark(heading[0], self._vectors(inputs)[0]),))

    @abstractmethod
    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Markup, list[Importances]]:
        """The model's answer, from outputs [1, ...], and the importance of the tokens for it."""

    def of_class(
        self, what: str, inputs: Inputs, number: int, are_classes: bool = True
    ) -> list[Importances]:
        """The tokens' importance for a class's log-odds; labels, unlike classes, do not compete."""

        def score(rows: Inputs) -> tf.Tensor:
            logits = self.subject.model(rows, training=False)
            odds = log_odds(logits, number) if are_classes else logits[:, number]
            return odds[:, None]

        return self.subject.explain([f"the log-odds {what}"], inputs, score)


class GroupPictures(PooledPictures):
    """Pictures of a model that scores several texts, each together with the same first text."""

    def explain(self, row: Row) -> list[Explanation]:
        return list(self.look(row).inputs)

    def look(self, row: Row) -> Look:
        # The text with the highest score comes first.
        first, others = self.accepted[0]
        text, group = text_of(row, first), list_of(row, others)
        read = self.seconds(group)
        features = self._preprocess((tf.constant([text] * len(group)), tf.constant(read)))
        scores = self._scores(features).numpy()
        order = np.argsort(-scores, kind="stable").tolist()
        seen = [
            self._seen(f"{i + 1}: {group[i]}", without_padding(features, i), text, read[i])
            for i in order
        ]
        vectors = self._vectors(features)
        marks = tuple(map(Mark, map(sections.shortened, group), vectors))
        names = [f"{i}: {each}" for i, each in enumerate(group, start=1)]
        return Look((text,), self.answer(names, scores), tuple(seen), marks)

    @abstractmethod
    def answer(self, names: Sequence[str], scores: np.ndarray) -> Markup:
        """The model's answer for a group with scores float32 [group], and names of its texts."""

    def seconds(self, group: Sequence[str]) -> list[str]:
        """The texts of a group as the model reads them."""
        return list(group)

    def _seen(self, title: str, inputs: Inputs, *texts: str) -> Explanation:
        subject = self.subject
        what = f"the score of this {self.accepted[0][1][:-1]}"
        explained = subject.explain([what], inputs, lambda pairs: self._scores(pairs)[:, None])
        return self.seen_of(title, inputs, explained, *texts)

    def _scores(self, pairs: Inputs) -> tf.Tensor:
        """float32 [pairs]: the score of each, which does not depend on the others."""
        alone = {name: values[:, None] for name, values in pairs.items()}
        return self.subject.model(alone, training=False)[:, 0]
