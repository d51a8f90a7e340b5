"""Runs of regression: texts with numbers, GLUE's and one's own."""

from typing import Any

import numpy as np

from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.tasks.regression.model import TextRegressor
from bert_tf.tasks.texts.glue_tasks import GLUE
from bert_tf.tasks.texts.labelled_texts import LabelledTexts
from bert_tf.tasks.texts.run import TextTask
from bert_tf.tasks.texts.text_files import glue_task
from bert_tf.text import Tokenizer

# Scores of STS-B are from 0 to 5.
_LOWEST, _HIGHEST = 0.0, 5.0


class Regression(TextTask):
    """Reads texts with numbers for a `TextRegressor`."""

    best_metric = "spearman"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        task = glue_task(self.data)
        if task and GLUE[task].classes:
            raise UserError(
                f"{task} has labels, not numbers, to be predicted; set task: classification"
            )

    def prepare(self, rows: LabelledTexts) -> None:
        """Numbers have no names."""

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> TextRegressor:
        """See `Task`."""
        return TextRegressor(encoder, tokenizer, **self.settings())

    def check(self, rows: LabelledTexts) -> None:
        """See `TextTask`."""
        rows.numbers()

    def words(self, predictions: np.ndarray, submitted: bool) -> list[str]:
        """The numbers; `submitted` ones are in the range of STS-B."""
        if submitted:
            predictions = predictions.clip(_LOWEST, _HIGHEST)
        return [f"{value:.6g}" for value in predictions]
