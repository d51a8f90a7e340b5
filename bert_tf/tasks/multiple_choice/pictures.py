"""Pictures of a model that chooses one of several endings."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.interpret import charts, sections
from bert_tf.interpret.importance import Inputs
from bert_tf.interpret.looks import Look, Mark, Section, SeenInput
from bert_tf.interpret.pictures import Pictures
from bert_tf.interpret.projection import pooled, row_vectors
from bert_tf.interpret.subject import Subject, without_padding
from bert_tf.predict.rows import Row, list_of, text_of
from bert_tf.tasks.multiple_choice.data import Choices
from bert_tf.text import Preprocessor

_RIGHT_OR_NOT = ("another choice", "the right choice")
_NOTE = (
    "Each point is a context of the dev data with one of its choices, seen by the vector that is "
    "scored."
)


class ChoicePictures(Pictures):
    """Pictures of a `MultipleChoice` model."""

    accepted = (("context", "choices"),)

    def __init__(self, subject: Subject):
        super().__init__(subject)
        self._preprocess = Preprocessor(subject.tokenizer, subject.max_length, padding="batch")

    def look(self, row: Row) -> Look:
        """See `Pictures`; the best choice comes first."""
        subject, context, choices = self.subject, text_of(row, "context"), list_of(row, "choices")
        contexts = [context] * len(choices)
        features = self._preprocess((tf.constant(contexts), tf.constant(choices)))
        scores = self._scores(features).numpy()
        order = np.argsort(-scores, kind="stable")
        seen = [
            self._seen(f"{i + 1}: {choices[i]}", without_padding(features, i))
            for i in order.tolist()
        ]
        encoded = subject.encoder.encode(features, training=False)
        vectors = pooled(subject.encoder, encoded, features["input_mask"]).numpy()
        marks = [
            Mark(sections.shortened(choice), vector)
            for choice, vector in zip(choices, vectors, strict=True)
        ]
        names = [f"{i}: {choice}" for i, choice in enumerate(choices, start=1)]
        answer = charts.bars(names, tf.nn.softmax(scores).numpy())
        return Look((context,), answer, tuple(seen), tuple(marks))

    def dev(self, rows: int, marks: Sequence[Mark]) -> list[Section]:
        """See `Pictures`."""
        subject = self.subject
        everything: list[Choices] = subject.read_dev()
        rows_taken = [everything[i] for i in sections.draw(len(everything), rows)]
        logits = subject.model.infer(rows_taken)
        encoded = subject.model.examples(rows_taken).encoded
        labels = np.array([row.label for row in rows_taken], np.int32)
        choices = len(rows_taken[0].choices)
        vectors = row_vectors(subject.encoder, pooled, encoded.take, encoded.lengths)
        count = len(encoded.lengths)
        texts = [subject.read_back(encoded.take(np.array([i]))) for i in range(count)]
        is_right = (np.arange(choices) == labels[:, None]).ravel().astype(int).tolist()
        names = [f"choice {i}" for i in range(1, choices + 1)]
        probabilities = tf.nn.softmax(logits).numpy()
        return [
            *sections.by_label(vectors, texts, is_right, _RIGHT_OR_NOT, marks, _NOTE),
            *sections.classes(names, probabilities, labels, "rows"),
        ]

    def _seen(self, title: str, inputs: Inputs) -> SeenInput:
        """A context with one choice, and what its tokens add to its score."""
        subject = self.subject
        explained = subject.explain(
            ["the score of this choice"], inputs, lambda pairs: self._scores(pairs)[:, None]
        )
        return subject.seen(title, inputs, explained)

    def _scores(self, pairs: Inputs) -> tf.Tensor:
        """float32 [pairs]: the score of each, which does not depend on the others."""
        alone = {name: values[:, None] for name, values in pairs.items()}
        return self.subject.model(alone, training=False)[:, 0]
