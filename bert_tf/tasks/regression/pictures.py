"""Pictures of a regression on texts, or on pairs of texts."""

from collections.abc import Sequence

import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import charts, sections
from bert_tf.interpret.importance import Importances, Inputs
from bert_tf.interpret.looks import Mark, PageSection
from bert_tf.tasks.regression.metrics import regression_metrics
from bert_tf.tasks.texts.pictures import NOTE, DevRows, TextPictures
from bert_tf.templates import figures


class RegressionPictures(TextPictures):
    """Pictures of a regression."""

    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Markup, list[Importances]]:
        subject = self.subject
        explained = subject.explain(
            ["the score"], inputs, lambda rows: subject.model(rows, training=False)[:, None]
        )
        return charts.score(float(output[0])), explained

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[PageSection]:
        found = regression_metrics(rows.outputs, rows.targets)
        note = (
            f"{len(rows.targets)} rows: Pearson {figures(found['pearson'])}, Spearman "
            f"{figures(found['spearman'])}, mean squared error {figures(found['loss'])}."
        )
        return sections.by_number(
            rows.vectors, rows.texts, rows.targets, rows.outputs, marks, NOTE, note
        )
