"""Serving a pre-trained model's next sentence head: two texts in, whether they follow out."""

from collections.abc import Mapping

import tensorflow as tf

from bert_tf.decoding.chunks import map_in_chunks
from bert_tf.errors import UserError
from bert_tf.export.served_model import ServedModel
from bert_tf.export.service import ModelService, Signature, Tensors, strings
from bert_tf.text import GroupPreprocessor, Tokenizer

_EXAMPLE = {"text_a": ["She opened the door."], "text_b": ["Nobody was there."]}


class NextSentenceService(ModelService):
    """`text_a`, `text_b` -> `is_next`.

    Args:
        model: a `PreTrainer`.
        tokenizer: its tokenizer.
        max_length: most tokens of a pair, longer ones are cut as in training; by default as many
            as the model has positions.

    Raises:
        UserError: the model has no such head.
    """

    task = "next_sentence"

    def __init__(
        self,
        model: ServedModel,
        tokenizer: Tokenizer,
        max_length: int | None = None,
    ):
        if model.next_sentence is None:
            raise UserError("the model was pre-trained without next sentences; it cannot tell them")
        super().__init__(model, tokenizer)
        positions = model.encoder.config.max_position_embeddings
        self._preprocess = GroupPreprocessor(tokenizer, max_length or positions)
        self._probabilities = model.function(self._is_next)

    def signatures(self) -> dict[str, Signature]:
        """One signature."""
        return {"serving_default": Signature(strings(*_EXAMPLE), self.answer, _EXAMPLE)}

    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`is_next` float32 [batch], the probability that the second text follows the first."""
        features = self._preprocess([inputs["text_a"], inputs["text_b"]])
        return {"is_next": map_in_chunks(self._probabilities, features)}

    def _is_next(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The encoder's inputs [batch, seq_len] -> float32 [batch]."""
        pooled = self.model.encoder.pooled(features)
        logits = tf.cast(self.model.next_sentence(pooled), tf.float32)
        return tf.nn.softmax(logits)[:, 0]
