"""Pictures of a regression on texts, or on pairs of texts."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import charts, sections
from bert_tf.interpret.importance import Importances, Inputs
from bert_tf.interpret.looks import Mark, Section
from bert_tf.tasks.regression.metrics import regression_metrics
from bert_tf.tasks.texts.pictures import NOTE, DevRows, TextPictures
from bert_tf.templates import figures


class RegressionPictures(TextPictures):
    """Pictures of a regression."""

    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Markup, list[Importances]]:
        """See `TextPictures`."""
        subject = self.subject
        explained = subject.explain(
            ["the score"], inputs, lambda rows: subject.model(rows, training=False)[:, None]
        )
        return charts.score(float(output[0])), explained

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[Section]:
        """See `TextPictures`."""
        outputs, targets = rows.outputs, rows.targets
        titles = [f"{given:.3g}: {text}" for given, text in zip(targets, rows.texts, strict=True)]
        low, high = float(targets.min()), float(targets.max())
        colours = [charts.between(float(x - low) / max(high - low, 1e-9)) for x in targets]
        legend = [(f"{low:.3g}", charts.between(0)), (f"{high:.3g}", charts.between(1))]
        found = regression_metrics(outputs, targets)
        note = (
            f"{len(targets)} rows: Pearson {figures(found['pearson'])}, Spearman "
            f"{figures(found['spearman'])}, mean squared error {figures(found['loss'])}."
        )
        both = charts.scatter(
            np.stack([targets, outputs], axis=1),
            [sections.shortened(each) for each in titles],
            colours,
            ("given", "predicted"),
            diagonal=True,
        )
        return [
            *sections.projection(rows.vectors, titles, colours, legend, marks, NOTE),
            Section("Predicted against given", both, note),
        ]
