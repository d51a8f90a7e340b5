"""Runs of classification: labelled texts, GLUE's and one's own."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.data.columns import Columns
from bert_tf.data.targets import Label
from bert_tf.encoder.encoder import Encoder
from bert_tf.models.class_weights import WeightedCrossEntropy, class_weights
from bert_tf.tasks.classification import ClassificationData
from bert_tf.tasks.classification.model import TextClassifier
from bert_tf.tasks.texts.glue import GLUE
from bert_tf.tasks.texts.run import TextTask
from bert_tf.tasks.texts.text_files import glue_task
from bert_tf.text import Tokenizer

# The label of rows whose labels are kept secret.
_SECRET = "-1"


class Classification(TextTask):
    """Reads labelled texts for a `TextClassifier`."""

    best_metric = "accuracy"
    data: ClassificationData

    _weights: tuple[float, ...] | None = None

    @property
    def target(self) -> Label:
        return Label(self.labels)

    def prepare(self, rows: Columns) -> None:
        """Finds the labels, and their weights."""
        self.labels = self.target.found_in(rows)
        if self.data.class_weights is not None:
            used = self.target.numbers(rows)[: self.data.train_rows]
            counts = np.bincount(used, minlength=len(self.labels))
            self._weights = class_weights(self.data.class_weights, self.labels, counts)

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> TextClassifier:
        return TextClassifier(encoder, tokenizer, self.labels, **self.settings())

    def compile(self, model: TextClassifier, **options: Any) -> None:
        """Compiles `model` with cross-entropy, where classes may have weights."""
        if self._weights is not None:
            options |= model.own_losses() | {"loss": WeightedCrossEntropy(self._weights)}
        model.compile(**options)

    def words(self, predictions: np.ndarray, submitted: bool) -> list[str]:
        """The labels; where GLUE has numbers and TFDS words, `submitted` are the numbers."""
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
