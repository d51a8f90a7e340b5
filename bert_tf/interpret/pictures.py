"""What every task family shows of its texts and of its dev data, and what a bare encoder shows."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.asking.row_files import Row, text_of
from bert_tf.interpret import sections
from bert_tf.interpret.importance import Inputs
from bert_tf.interpret.looks import Look, Mark, PageSection
from bert_tf.interpret.projection import mean
from bert_tf.interpret.subject import Subject
from bert_tf.text import Preprocessor
from bert_tf.text.packing import Cut


class Pictures(ABC):
    """The pictures of one model.

    Args:
        subject: the model.

    Attributes:
        accepted: the names of the inputs of a row; several where there is a choice.
    """

    accepted: tuple[tuple[str, ...], ...]

    def __init__(self, subject: Subject):
        self.subject = subject

    @classmethod
    def of_model(cls, model: Any) -> Self:
        """The pictures of a model in memory, which show all tokens."""
        own = model, model.encoder, model.tokenizer
        return cls(Subject(f"this {type(model).__name__}", None, None, *own, most_tokens=2**30))

    @abstractmethod
    def look(self, row: Row) -> Look:
        """What the model says of a text, and why."""

    def among_texts(self, marks: Sequence[Mark]) -> list[PageSection]:
        """The texts that were looked at, where there are no dev data; by default nothing."""
        return []

    def dev(self, rows: int, marks: Sequence[Mark]) -> list[PageSection]:
        """The sections of the page about the dev data of a run; by default none.

        Args:
            rows: how many rows of the dev data to take.
            marks: those of the texts that were looked at.

        Raises:
            UserError: the data cannot be read.
        """
        return []


class EncoderPictures(Pictures):
    """Pictures of an `Encoder` without a task: attention, and its texts in one plane."""

    accepted: tuple[tuple[str, ...], ...] = (("text",), ("text_a", "text_b"))
    # What a point is.
    note = sections.MEAN_NOTE

    def __init__(self, subject: Subject):
        super().__init__(subject)
        cut: Cut = getattr(subject.model, "cut", "end")
        self._preprocess = Preprocessor(subject.tokenizer, subject.max_length, "batch", cut)

    def look(self, row: Row) -> Look:
        subject, texts = self.subject, [text_of(row, name) for name in row]
        inputs = self._preprocess(tuple(tf.constant([text]) for text in texts))
        heading = tuple(map(sections.shortened, texts))
        marks = (Mark(heading[0], self.vector(inputs)),)
        seen = subject.seen("", inputs, focus=self.focus(inputs))
        return Look(heading, self.answer(row), (seen,), marks)

    def answer(self, row: Row) -> Markup:
        """What the model says of a row; an encoder says nothing."""
        return Markup()

    def focus(self, inputs: Inputs) -> int:
        """A place of interest in one input [1, tokens], where not all tokens can be shown."""
        return 0

    def vector(self, inputs: Inputs) -> np.ndarray:
        """float32 [hidden]: where one input [1, tokens] is among the texts."""
        encoder = self.subject.encoder
        encoded = encoder.encode(inputs, training=False)
        return mean(encoder, encoded, inputs["input_mask"])[0].numpy()

    def among_texts(self, marks: Sequence[Mark]) -> list[PageSection]:
        return sections.of_marks(marks, self.note)
