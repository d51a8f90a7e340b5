"""Pictures of a model that chooses one of several endings."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import charts, sections
from bert_tf.interpret.looks import Mark, PageSection
from bert_tf.tasks.texts.pictures import DevRows, GroupPictures

_RIGHT_OR_NOT = ("another choice", "the right choice")
_NOTE = (
    "Each point is a context of the dev data with one of its choices: the vector that the head "
    "scores."
)


class ChoicePictures(GroupPictures):
    """Pictures of a `MultipleChoice` model."""

    def answer(self, names: Sequence[str], scores: np.ndarray) -> Markup:
        return charts.bars(names, tf.nn.softmax(self.subject.model.calibrated(scores)).numpy())

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[PageSection]:
        labels, choices = rows.targets, rows.outputs.shape[1]
        is_right = (np.arange(choices) == labels[:, None]).ravel().astype(int).tolist()
        names = [f"choice {i}" for i in range(1, choices + 1)]
        probabilities = tf.nn.softmax(rows.outputs).numpy()
        vectors, texts = rows.vectors, rows.texts
        return [
            *sections.by_label(vectors, texts, is_right, _RIGHT_OR_NOT, marks, _NOTE),
            *sections.classes(names, probabilities, labels, "rows"),
        ]
