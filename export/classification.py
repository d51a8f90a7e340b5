"""Serving a `SequenceClassifier`: texts in, labels and probabilities out."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.models import SequenceClassifier
from bert_tf.text import Tokenizer
from export.service import Tensors, class_names
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

    has_labels = True

    def __init__(
        self,
        model: SequenceClassifier,
        tokenizer: Tokenizer,
        labels: tuple[str, ...] = (),
        **options: Any,
    ):
        super().__init__(model, tokenizer, class_names(labels, model.num_classes), **options)

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
