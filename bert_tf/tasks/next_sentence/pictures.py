"""Pictures of a model that predicts whether a text follows another one."""

from collections.abc import Sequence

import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import charts, sections
from bert_tf.interpret.importance import Importances, Inputs
from bert_tf.interpret.looks import Mark, PageSection
from bert_tf.tasks.texts.pictures import TextPictures

_NOTE = "Each point is a pair of texts: the pooled vector, which the head reads."
_NAMES = ("the second text follows", "it does not")


class NextSentencePictures(TextPictures):
    """Pictures of a `NextSentence`."""

    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Markup, list[Importances]]:
        explained = self.of_class("that the second text follows", inputs, 0)
        return charts.bars(_NAMES, tf.nn.softmax(output[0]).numpy()), explained

    def among_texts(self, marks: Sequence[Mark]) -> list[PageSection]:
        return sections.of_marks(marks, _NOTE)
