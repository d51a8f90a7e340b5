"""Serving a `SequenceClassifier`: texts in, labels and probabilities out."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.config import RunConfig
from bert_tf.errors import UserError
from bert_tf.models import SequenceClassifier
from bert_tf.text import Preprocessor, Tokenizer
from export.service import Service, Signature, Tensors, strings

_EXAMPLES = {"text": ["What a lovely film."]}
_PAIR_EXAMPLES = {"text_a": ["A man plays the guitar."], "text_b": ["Someone makes music."]}


class ClassificationService(Service):
    """`text`, or `text_a` and `text_b` -> `label`, `probabilities`, `classes`.

    Args:
        model: the classifier.
        tokenizer: its tokenizer.
        labels: names of the classes in the order of the logits; by default their numbers.
        max_length: most tokens of an input, longer texts are cut; by default as many as the
            model has positions.
        pair: whether an input is a pair of texts (`text_a`, `text_b`) rather than one (`text`).

    Raises:
        UserError: another number of labels than the model has classes.
    """

    def __init__(
        self,
        model: SequenceClassifier,
        tokenizer: Tokenizer,
        labels: tuple[str, ...] = (),
        max_length: int | None = None,
        pair: bool = False,
    ):
        labels = labels or tuple(str(i) for i in range(model.num_classes))
        if len(labels) != model.num_classes:
            raise UserError(f"{len(labels)} labels for a model of {model.num_classes} classes")
        super().__init__(model, tokenizer, labels)
        self._model, self._pair = model, pair
        max_length = max_length or model.encoder.config.max_position_embeddings
        self._preprocess = Preprocessor(tokenizer, max_length=max_length, padding="batch")

    @staticmethod
    def options_of(config: RunConfig) -> dict[str, Any]:
        """See `Service`."""
        return {"max_length": config.train.max_length, "pair": len(config.data.text_columns) == 2}

    def signatures(self) -> dict[str, Signature]:
        """One signature."""
        example = _PAIR_EXAMPLES if self._pair else _EXAMPLES
        return {"serving_default": Signature(strings(*example), self.answer, example)}

    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`label` string [batch], `probabilities` float32 and `classes` string [batch, classes]."""
        texts = (inputs["text_a"], inputs["text_b"]) if self._pair else inputs["text"]
        logits = self._model(self._preprocess(texts), training=False)
        names = tf.constant(self.labels)
        batch = tf.shape(logits)[0]
        return {
            "label": tf.gather(names, tf.argmax(logits, axis=-1)),
            "probabilities": tf.nn.softmax(logits),
            "classes": tf.tile(names[tf.newaxis, :], [batch, 1]),
        }
