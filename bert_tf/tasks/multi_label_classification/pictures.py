"""Pictures of a classifier that gives any number of labels."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import charts, sections
from bert_tf.interpret.importance import Importances, Inputs
from bert_tf.interpret.looks import Mark, PageSection
from bert_tf.tasks.multi_label_classification.metrics import sigmoid
from bert_tf.tasks.texts.pictures import NOTE, DevRows, TextPictures
from bert_tf.tasks.uncertainty import graded

_NONE = "no label"


class MultiLabelPictures(TextPictures):
    """Pictures of a `MultiLabelClassifier`."""

    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Markup, list[Importances]]:
        # The most probable label is explained.
        names, best = self.subject.model.labels, int(tf.argmax(output[0]))
        explained = self.of_class(f"of {names[best]}", inputs, best, are_classes=False)
        shares = sigmoid(self.subject.model.calibrated(output[0]).numpy())
        return charts.bars(names, shares.tolist()), explained

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[PageSection]:
        # The points are coloured by the first label of a text.
        names, given = self.subject.model.labels, rows.targets > 0
        probabilities = sigmoid(rows.outputs.logits)
        predicted = probabilities >= np.asarray(rows.outputs.thresholds, np.float32)
        first = np.where(given.any(axis=1), given.argmax(axis=1), len(names)).tolist()
        return [
            *sections.by_label(rows.vectors, rows.texts, first, (*names, _NONE), marks, NOTE),
            _by_class(names, given, predicted),
            sections.calibration(*graded(rows.outputs.logits, rows.targets), "decisions"),
        ]


def _by_class(names: Sequence[str], given: np.ndarray, predicted: np.ndarray) -> PageSection:
    there, found, right = (each.sum(axis=0) for each in (given, predicted, given & predicted))
    with np.errstate(invalid="ignore"):  # a label that never occurs
        shares = right / found, right / there, 2 * right / (there + found)
    numbers = zip(there, found, *shares, strict=True)
    heading = ("label", "rows", "predicted", "precision", "recall", "F1")
    note = f"{len(given)} rows; a label is predicted where its probability reaches its threshold."
    return PageSection("Labels", charts.table(heading, [*zip(names, numbers, strict=True)]), note)
