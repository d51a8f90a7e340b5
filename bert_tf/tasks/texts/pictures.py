"""What the pictures of models on one text or two have in common."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.asking.row_files import Row, text_of
from bert_tf.data.columns import Columns
from bert_tf.interpret import sections
from bert_tf.interpret.importance import Importances, Inputs
from bert_tf.interpret.looks import Look, Mark, PageSection
from bert_tf.interpret.pictures import Pictures
from bert_tf.interpret.projection import pooled, row_vectors
from bert_tf.interpret.subject import Subject
from bert_tf.text import Preprocessor

NOTE = "Each point is a text of the dev data: the pooled vector, which the head reads."


class DevRows(NamedTuple):
    """Some rows of the dev data.

    Attributes:
        outputs: what `infer` of the model returns.
        targets: [rows], what is given.
        vectors: float32 [rows, hidden], what the head reads.
        texts: of each row.
    """

    outputs: Any
    targets: np.ndarray
    vectors: np.ndarray
    texts: list[str]


class TextPictures(Pictures):
    """What all of them share.

    A subclass of a task with runs overrides `of_dev`.
    """

    def __init__(self, subject: Subject):
        super().__init__(subject)
        self.accepted = (subject.model.input_names,)
        self._preprocess = Preprocessor(subject.tokenizer, subject.max_length, padding="batch")

    def look(self, row: Row) -> Look:
        subject = self.subject
        texts = [text_of(row, name) for name in self.accepted[0]]
        inputs = self._preprocess(tuple(tf.constant([text]) for text in texts))
        output = subject.model(inputs, training=False)
        answer, explained = self.answer(inputs, output)
        encoded = subject.encoder.encode(inputs, training=False)
        vector = pooled(subject.encoder, encoded, inputs["input_mask"])[0].numpy()
        seen = subject.seen("", inputs, explained)
        heading = tuple(map(sections.shortened, texts))
        return Look(heading, answer, (seen,), (Mark(heading[0], vector),))

    def dev(self, rows: int, marks: Sequence[Mark]) -> list[PageSection]:
        subject = self.subject
        everything: Columns = subject.read_dev()
        chosen = sections.draw(len(everything), rows)
        data = everything.take(chosen.tolist())
        encoded = subject.model.encoded(data.values)
        outputs = subject.model.infer(data)
        vectors = row_vectors(subject.encoder, pooled, encoded.take, encoded.lengths)
        texts = [subject.read_back(encoded.take(np.array([i]))) for i in range(len(chosen))]
        return self.of_dev(
            DevRows(outputs, subject.model.known_target.numbers(data), vectors, texts), marks
        )

    @abstractmethod
    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Markup, list[Importances]]:
        """What the model says, [1, ...], and what the tokens add to it."""

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[PageSection]:
        """The pictures of some dev data."""
        raise NotImplementedError
