"""Runs of classification: labelled texts, from GLUE or from the user."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bert_tf.data.columns import Columns
from bert_tf.data.targets import Label
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.tasks.classification import ClassificationData
from bert_tf.tasks.classification.model import TextClassifier
from bert_tf.tasks.texts.glue import GLUE
from bert_tf.tasks.texts.run import TextTask
from bert_tf.tasks.texts.text_files import glue_task
from bert_tf.text import Tokenizer

_SECRET = "-1"  # the label of rows whose labels are kept secret


class Classification(TextTask):
    """Reads labelled texts for a `TextClassifier`."""

    best_metric = "accuracy"
    data: ClassificationData

    @property
    def target(self) -> Label:
        return Label(self.labels)

    def prepare(self, rows: Columns) -> None:
        self.labels = self.target.found_in(rows)
        if self.data.class_weights is not None:
            used = self.target.numbers(rows)[: self.data.train_rows]
            counts = np.bincount(used, minlength=len(self.labels))
            weights = class_weights(self.data.class_weights, self.labels, counts)
            self.class_weight = dict(enumerate(weights))

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> TextClassifier:
        return TextClassifier(encoder, tokenizer, self.labels, **self.settings())

    def words(self, predictions: np.ndarray, submitted: bool) -> list[str]:
        """The labels; if GLUE has numbers where TFDS has words, `submitted` gives the numbers."""
        names = self.labels
        task = GLUE.get(glue_task(self.data))
        if submitted and task and set(names) != set(task.classes):
            names = task.classes
        return [names[label] for label in predictions.argmax(axis=1)]

    def _read(self, path: Path) -> Columns:
        rows = super()._read(path)
        is_known = self.needs_labels(path) or _SECRET in self.labels
        if is_known or {*(rows.targets or ())} != {_SECRET}:
            return rows
        return dataclasses.replace(rows, targets=None)


def class_weights(
    setting: str | Mapping[str, float], labels: Sequence[str], counts: np.ndarray
) -> tuple[float, ...]:
    """The weight of each class, such that the mean weight of a row is 1: the loss is still a mean
    over rows, and its gradient stays as large. `counts` are the numbers of training rows by class.
    """
    if isinstance(setting, str):
        weights = 1 / np.maximum(counts, 1)
    else:
        for name in setting:
            if name not in labels:
                raise UserError(
                    f"data.class_weights has {name!r}, which is not a label; the labels are "
                    f"{', '.join(labels)}"
                )
        weights = np.array([setting.get(name, 1.0) for name in labels])
    return tuple((weights * counts.sum() / (weights * counts).sum()).tolist())
