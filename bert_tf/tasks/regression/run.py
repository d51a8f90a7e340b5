"""Runs of regression: texts with numbers, from GLUE or from the user."""

import numpy as np

from bert_tf.data.targets import Number
from bert_tf.encoder.encoder import Encoder
from bert_tf.tasks.regression.model import TextRegressor
from bert_tf.tasks.texts.run import TextTask
from bert_tf.text import Tokenizer

# Scores of STS-B are from 0 to 5.
_LOWEST, _HIGHEST = 0.0, 5.0


class Regression(TextTask):
    """Reads texts with numbers for a `TextRegressor`."""

    best_metric = "spearman"
    has_classes = False
    target = Number()

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> TextRegressor:
        return TextRegressor(encoder, tokenizer, **self.settings())

    def words(self, predictions: np.ndarray, submitted: bool) -> list[str]:
        """The numbers; `submitted` ones are clipped to the range of STS-B."""
        if submitted:
            predictions = predictions.clip(_LOWEST, _HIGHEST)
        return [f"{value:.6g}" for value in predictions]
