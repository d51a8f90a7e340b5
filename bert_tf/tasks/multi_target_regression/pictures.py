"""Pictures of a regression with several targets."""

from collections.abc import Sequence

import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import charts, sections
from bert_tf.interpret.importance import Importances, Inputs
from bert_tf.interpret.looks import Mark, PageSection
from bert_tf.tasks.regression.metrics import regression_metrics
from bert_tf.tasks.texts.pictures import NOTE, DevRows, TextPictures
from bert_tf.templates import figures


class MultiTargetPictures(TextPictures):
    """Pictures of a `MultiTargetRegressor`."""

    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Markup, list[Importances]]:
        subject, names = self.subject, self.subject.model.targets
        explained = subject.explain(
            [f"the number {name}" for name in names],
            inputs,
            lambda rows: subject.model(rows, training=False),
        )
        numbers = output[0].numpy().tolist()
        rows = [(name, [number]) for name, number in zip(names, numbers, strict=True)]
        return charts.table(("", "number"), rows), explained

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[PageSection]:
        found = []
        for name, given, predicted in zip(
            self.subject.model.targets, rows.targets.T, rows.outputs.T, strict=True
        ):
            metrics = regression_metrics(predicted, given)
            note = (
                f"{name}: {len(given)} rows, Pearson {figures(metrics['pearson'])}, Spearman "
                f"{figures(metrics['spearman'])}, mean squared error {figures(metrics['loss'])}."
            )
            found += sections.by_number(
                rows.vectors, rows.texts, given, predicted, marks, NOTE, note
            )
        return found
