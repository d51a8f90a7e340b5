"""A number for a text or a pair of texts, such as the likeness of two sentences (STS-B)."""

from typing import Any

import keras
import numpy as np

from bert_tf.data.glue_tasks import GLUE
from bert_tf.data.labelled_texts import LabelledTexts
from bert_tf.data.text_files import glue_task
from bert_tf.errors import UserError
from bert_tf.metrics.regression import regression_metrics
from bert_tf.models import Encoder, SequenceClassifier
from bert_tf.tasks.texts import TextTask

# Scores of STS-B are from 0 to 5.
_LOWEST, _HIGHEST = 0.0, 5.0


class Regression(TextTask):
    """Reads texts with numbers, trains a `SequenceClassifier` with one output and scores it."""

    best_metric = "spearman"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        task = glue_task(self.data)
        if task and GLUE[task].classes:
            raise UserError(
                f"{task} has labels, not numbers, to be predicted; set task: classification"
            )
        if self.data.class_weights is not None:
            raise UserError("data.class_weights is not for numbers; remove it")

    def prepare(self, rows: LabelledTexts) -> None:
        """Numbers have no names."""

    def model(self, encoder: Encoder) -> SequenceClassifier:
        """See `Task`."""
        return SequenceClassifier(encoder, num_classes=1)

    def compile(self, model: keras.Model, **options: Any) -> None:
        """Compiles `model` with the mean squared error."""
        model.compile(loss=keras.losses.MeanSquaredError(), **options)

    def targets(self, rows: LabelledTexts) -> np.ndarray:
        """float32 [rows]."""
        return rows.numbers()

    def metrics(self, predictions: np.ndarray, targets: np.ndarray) -> dict[str, float]:
        """See `regression_metrics`."""
        return regression_metrics(predictions, targets)

    def words(self, predictions: np.ndarray, submitted: bool) -> list[str]:
        """The numbers; `submitted` ones are in the range of STS-B."""
        if submitted:
            predictions = predictions.clip(_LOWEST, _HIGHEST)
        return [f"{value:.6g}" for value in predictions]
