"""Pictures of an encoder without a task: attention, and its texts beside each other."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.inspecting import charts, sections
from bert_tf.inspecting.looks import Look, Mark, Section
from bert_tf.inspecting.markup import Html
from bert_tf.inspecting.pictures import Pictures
from bert_tf.inspecting.projection import mean
from bert_tf.inspecting.subject import Subject
from bert_tf.predict.rows import Row, text_of
from bert_tf.text import Preprocessor

_NOTE = "Each point is a text: the mean of the last layer over its tokens."


class EncoderPictures(Pictures):
    """Pictures of an `Encoder`."""

    accepted = (("text",), ("text_a", "text_b"))

    def __init__(self, subject: Subject):
        super().__init__(subject)
        self._preprocess = Preprocessor(subject.tokenizer, subject.max_length, padding="batch")

    def look(self, row: Row) -> Look:
        """See `Pictures`."""
        subject, texts = self.subject, [text_of(row, name) for name in row]
        inputs = self._preprocess(tuple(tf.constant([text]) for text in texts))
        encoded = subject.encoder.encode(inputs, training=False)
        vector = mean(subject.encoder, encoded, inputs["input_mask"])[0].numpy()
        heading = tuple(map(sections.shortened, texts))
        return Look(heading, Html(), (subject.seen("", inputs),), (Mark(heading[0], vector),))

    def dev(self, rows: int, marks: Sequence[Mark]) -> list[Section]:
        """The texts themselves: an encoder has no dev data."""
        if not marks:
            return []
        names = [mark.name for mark in marks]
        colours = charts.colours_of(len(marks))
        vectors = np.stack([mark.vector for mark in marks])
        legend = charts.legend(names, colours)
        return sections.projection(vectors, names, colours, legend, (), _NOTE)
