"""Pictures of a classifier of texts, or of pairs of texts."""

from collections.abc import Sequence

import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import charts, sections
from bert_tf.interpret.importance import Importances, Inputs, log_odds
from bert_tf.interpret.looks import Mark, PageSection
from bert_tf.tasks.texts.pictures import NOTE, DevRows, TextPictures


class ClassificationPictures(TextPictures):
    """Pictures of a classifier."""

    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Markup, list[Importances]]:
        subject, names = self.subject, self.subject.model.labels
        best = int(tf.argmax(output[0]))
        explained = subject.explain(
            [f"the log-odds of {names[best]}"],
            inputs,
            lambda rows: log_odds(subject.model(rows, training=False), best)[:, None],
        )
        return charts.bars(
            names, tf.nn.softmax(subject.model.calibrated(output[0])).numpy()
        ), explained

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[PageSection]:
        names = self.subject.model.labels
        return [
            *sections.by_label(rows.vectors, rows.texts, rows.targets.tolist(), names, marks, NOTE),
            *sections.classes(names, tf.nn.softmax(rows.outputs).numpy(), rows.targets, "texts"),
        ]
