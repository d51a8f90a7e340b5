"""Serving a `SequenceClassifier` of one output: texts in, a number out."""

from collections.abc import Mapping

import tensorflow as tf

from export.service import Tensors
from export.texts import TextService


class RegressionService(TextService):
    """`text`, or `text_a` and `text_b` -> `score`. See `TextService` for the arguments."""

    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`score` float32 [batch]."""
        return {"score": self.logits(inputs)}
