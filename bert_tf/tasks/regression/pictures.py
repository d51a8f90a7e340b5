"""Pictures of a regression on texts, or on pairs of texts, with one target or several."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import charts, sections
from bert_tf.interpret.importance import Importances, Inputs
from bert_tf.interpret.looks import Mark, PageSection
from bert_tf.tasks.texts.metrics import regression_metrics
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
        found = []
        columns = [np.atleast_2d(each.T) for each in (rows.targets, rows.outputs)]
        names = [f"{name}: " for name in getattr(self.subject.model, "targets", ())] or [""]
        for name, given, predicted in zip(names, *columns, strict=True):
            metrics = regression_metrics(predicted, given)
            note = (
                f"{name}{len(given)} rows, Pearson {figures(metrics['pearson'])}, Spearman "
                f"{figures(metrics['spearman'])}, mean squared error {figures(metrics['loss'])}."
            )
            found += sections.by_number(
                rows.vectors, rows.texts, given, predicted, marks, NOTE, note
            )
        return found


class MultiTargetPictures(RegressionPictures):
    """Pictures of a regression with several targets."""

    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Markup, list[Importances]]:
        subject, names = self.subject, self.subject.model.targets
        explained = subject.explain(
            [f"the number {name}" for name in names],
            inputs,
            lambda rows: subject.model(rows, training=False),
        )
        rows = [(name, [n]) for name, n in zip(names, output[0].numpy().tolist(), strict=True)]
        return charts.table(("", "number"), rows), explained
