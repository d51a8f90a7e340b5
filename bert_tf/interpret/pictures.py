"""What every task family shows of its texts and of its dev data, and what a bare encoder shows."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.asking import characters
from bert_tf.asking.row_files import Row, text_of
from bert_tf.interpret import sections
from bert_tf.interpret.importance import Inputs
from bert_tf.interpret.looks import Explanation, Look, Mark, PageSection
from bert_tf.interpret.projection import mean
from bert_tf.interpret.subject import Subject
from bert_tf.text import Preprocessor
from bert_tf.text.packing import Cut, truncate


class Pictures(ABC):
    """The pictures of one model.

    Args:
        subject: the model.

    Attributes:
        accepted: the names of the inputs of a row; several where there is a choice.
    """

    accepted: tuple[tuple[str, ...], ...]
    # Packs texts, unless they are cut into windows.
    _preprocess: Preprocessor

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

    def explain(self, row: Row) -> Explanation | list[Explanation]:
        """The explanation of a row; a list for several texts, or for several windows of a text."""
        found = self.look(row).inputs
        return found[0] if len(found) == 1 else list(found)

    def seen_of(self, title: str, inputs: Inputs, explained: Any, *texts: str) -> Explanation:
        """What can be seen of an input of these texts, with the offsets of its tokens."""
        reader, none = self._preprocess, [(-1, -1)]
        pieces = [reader.tokenizer.tokenize_with_offsets([text])[1:] for text in texts]
        budget, found = reader.max_length - 1 - len(texts), none
        both = [truncate(each, budget, reader.cut) for each in zip(*pieces, strict=True)]
        for text, *ranges in zip(texts, *both, strict=True):
            places = np.stack([each.values.numpy() for each in ranges], axis=1).tolist()
            character = characters(text)
            found = found + [(character(start), character(end)) for start, end in places] + none
        seen = self.subject.seen(title, inputs, explained, self.focus(inputs))
        return seen._replace(offsets=np.array(found))

    def focus(self, inputs: Inputs) -> int:
        """A place of interest in one input [1, tokens], where not all tokens can be shown."""
        return 0

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
    # What a point stands for.
    note = sections.MEAN_NOTE

    def __init__(self, subject: Subject):
        super().__init__(subject)
        cut: Cut = getattr(subject.model, "cut", "end")
        self._preprocess = Preprocessor(subject.tokenizer, subject.max_length, "batch", cut)

    def look(self, row: Row) -> Look:
        texts = [text_of(row, name) for name in row]
        inputs = self._preprocess(tuple(tf.constant([text]) for text in texts))
        heading = tuple(map(sections.shortened, texts))
        marks = (Mark(heading[0], self.vector(inputs)),)
        seen = self.seen_of("", inputs, (), *texts)
        return Look(heading, self.answer(row), (seen,), marks)

    def answer(self, row: Row) -> Markup:
        """What the model says of a row; an encoder says nothing."""
        return Markup()

    def vector(self, inputs: Inputs) -> np.ndarray:
        """float32 [hidden]: the point of one input [1, tokens] among the texts."""
        encoder = self.subject.encoder
        encoded = encoder.encode(inputs, training=False)
        return mean(encoder, encoded, inputs["input_mask"])[0].numpy()

    def among_texts(self, marks: Sequence[Mark]) -> list[PageSection]:
        return sections.of_marks(marks, self.note)
