"""What serving a classifier and serving a regression have in common: texts in, logits out."""

import abc
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.config import RunConfig
from bert_tf.data.text_files import text_columns
from bert_tf.decoding.chunks import map_in_chunks
from bert_tf.models import SequenceClassifier
from bert_tf.text import GroupPreprocessor, Tokenizer
from export.service import Service, Signature, Tensors, strings

_EXAMPLES = {"text": ["What a lovely film."]}
_PAIR_EXAMPLES = {"text_a": ["A man plays the guitar."], "text_b": ["Someone makes music."]}


class TextService(Service):
    """`text`, or `text_a` and `text_b` -> what a subclass makes of the logits.

    Args:
        model: the classifier.
        tokenizer: its tokenizer.
        labels: names of the classes, where it has classes.
        max_length: most tokens of an input, longer texts are cut; by default as many as the
            model has positions.
        pair: whether an input is a pair of texts (`text_a`, `text_b`) rather than one (`text`).
    """

    assumed = "one text; for pairs use export.save(…, pair=True)"

    def __init__(
        self,
        model: SequenceClassifier,
        tokenizer: Tokenizer,
        labels: tuple[str, ...] = (),
        max_length: int | None = None,
        pair: bool = False,
    ):
        super().__init__(model, tokenizer, labels)
        self._example = _PAIR_EXAMPLES if pair else _EXAMPLES
        max_length = max_length or model.encoder.config.max_position_embeddings
        self._preprocess = GroupPreprocessor(tokenizer, max_length)

    @staticmethod
    def options_of(config: RunConfig) -> dict[str, Any]:
        """See `Service`."""
        pair = len(text_columns(config.data)) == 2
        return {"max_length": config.train.max_length, "pair": pair}

    def signatures(self) -> dict[str, Signature]:
        """One signature."""
        example = self._example
        return {"serving_default": Signature(strings(*example), self.answer, example)}

    @abc.abstractmethod
    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """The outputs of a batch."""

    def logits(self, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The model's output, float32 [batch, ...], in bounded memory however large the batch."""
        features = self._preprocess([inputs[name] for name in self._example])
        return map_in_chunks(lambda rows: self.model(rows, training=False), features)
