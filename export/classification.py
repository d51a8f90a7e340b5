"""Serving a `SequenceClassifier`: texts in, labels and probabilities out."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.models import SequenceClassifier
from bert_tf.text import Tokenizer
from export.service import Tensors
from export.texts import TextService


class ClassificationService(TextService):
    """`text`, or `text_a` and `text_b` -> `label`, `probabilities`, `classes`.

    Args:
        model: the classifier.
        tokenizer: its tokenizer.
        labels: names of the classes in the order of the logits; by default their numbers.
        **options: see `TextService`.

    Raises:
        UserError: another number of labels than the model has classes.
    """

    def __init__(
        self,
        model: SequenceClassifier,
        tokenizer: Tokenizer,
        labels: tuple[str, ...] = (),
        **options: Any,
    ):
        labels = labels or tuple(str(i) for i in range(model.num_classes))
        if len(labels) != model.num_classes:
            raise UserError(f"{len(labels)} labels for a model of {model.num_classes} classes")
        super().__init__(model, tokenizer, labels, **options)

    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`label` string [batch], `probabilities` float32 and `classes` string [batch, classes]."""
        logits = self.logits(inputs)
        names = tf.constant(self.labels)
        batch = tf.shape(logits)[0]
        return {
            "label": tf.gather(names, tf.argmax(logits, axis=-1)),
            "probabilities": tf.nn.softmax(logits),
            "classes": tf.tile(names[tf.newaxis, :], [batch, 1]),
        }
