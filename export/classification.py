"""Serving a `SequenceClassifier`: texts in, labels and probabilities out."""

from collections.abc import Mapping

import tensorflow as tf

from bert_tf.models import SequenceClassifier
from bert_tf.text import Preprocessor, Tokenizer
from export.service import Service, Tensors


class ClassificationService(Service):
    """`text`, or `text_a` and `text_b` -> `label`, `probabilities`, `classes`.

    Args:
        model: the classifier.
        tokenizer: its tokenizer.
        labels: names of the classes in the order of the logits.
        max_length: most tokens of an input.
        pair: whether an input is a pair of texts.
    """

    def __init__(
        self,
        model: SequenceClassifier,
        tokenizer: Tokenizer,
        labels: tuple[str, ...],
        max_length: int,
        pair: bool,
    ):
        super().__init__(model, tokenizer, labels)
        self.input_names = ("text_a", "text_b") if pair else ("text",)
        preprocess = Preprocessor(tokenizer, max_length=max_length, padding="batch")
        # Closed over, not attributes: a SavedModel shall hold no Keras object.
        self._logits = lambda texts: model(preprocess(texts if pair else texts[0]), training=False)

    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`label` string [batch], `probabilities` float32 and `classes` string [batch, classes]."""
        logits = self._logits(tuple(inputs[name] for name in self.input_names))
        names = tf.constant(self.labels)
        batch = tf.shape(logits)[0]
        return {
            "label": tf.gather(names, tf.argmax(logits, axis=-1)),
            "probabilities": tf.nn.softmax(logits),
            "classes": tf.tile(names[tf.newaxis, :], [batch, 1]),
        }
