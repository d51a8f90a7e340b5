"""Pictures of a classifier of texts, or of pairs of texts."""

from collections.abc import Sequence

import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import charts, sections
from bert_tf.interpret.importance import Importances, Inputs
from bert_tf.interpret.looks import Mark, PageSection
from bert_tf.tasks.texts.pictures import NOTE, DevRows, TextPictures


class ClassificationPictures(TextPictures):
    """Pictures of a classifier."""

    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Markup, list[Importances]]:
        names, best = self.subject.model.labels, int(tf.argmax(output[0]))
        explained = self.of_class(f"of {names[best]}", inputs, best)
        shares = tf.nn.softmax(self.subject.model.calibrated(output[0])).numpy()
        return charts.bars(names, shares), explained

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[PageSection]:
        names = self.subject.model.labels
        return [
            *sections.by_label(rows.vectors, rows.texts, rows.targets.tolist(), names, marks, NOTE),
            *sections.classes(names, tf.nn.softmax(rows.outputs).numpy(), rows.targets, "texts"),
        ]
