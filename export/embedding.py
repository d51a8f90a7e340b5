"""Serving an encoder: texts in, one vector for each out."""

from collections.abc import Mapping
from typing import Literal, get_args

import tensorflow as tf

from bert_tf.decoding.chunks import map_in_chunks
from bert_tf.errors import UserError
from bert_tf.export.served_model import ServedModel
from bert_tf.export.service import ModelService, Signature, Tensors, strings
from bert_tf.text import GroupPreprocessor, Tokenizer

Pooling = Literal["cls", "mean", "pooled"]
POOLINGS: tuple[str, ...] = get_args(Pooling)


class EmbeddingService(ModelService):
    """`text` -> `embedding`.

    Args:
        model: an `Encoder`.
        tokenizer: its tokenizer.
        max_length: most tokens of a text, longer ones are cut; by default as many as the encoder
            has positions.
        pooling: "mean" is the mean of the last layer over all tokens of the text, [CLS] and [SEP]
            among them; "cls" is the last layer at [CLS]; "pooled" is the pooler's output.

    Raises:
        UserError: an unknown pooling, or that of a pooler which the encoder does not have.
    """

    task = "embedding"

    def __init__(
        self,
        model: ServedModel,
        tokenizer: Tokenizer,
        max_length: int | None = None,
        pooling: Pooling = "mean",
    ):
        if pooling not in POOLINGS:
            raise UserError(f"unknown pooling {pooling!r}; choose one of {', '.join(POOLINGS)}")
        if pooling == "pooled" and model.pooler is None:
            raise UserError("the encoder has no pooler; choose the pooling mean or cls")
        super().__init__(model, tokenizer)
        self._pooling = pooling
        positions = model.config.max_position_embeddings
        self._preprocess = GroupPreprocessor(tokenizer, max_length or positions)
        self._vectors = model.function(self._pool)

    def facts(self) -> dict[str, object]:
        """See `Service`."""
        return super().facts() | {"pooling": self._pooling}

    def signatures(self) -> dict[str, Signature]:
        """One signature."""
        example = {"text": ["What a lovely film."]}
        return {"serving_default": Signature(strings("text"), self.answer, example)}

    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`embedding` float32 [batch, hidden]."""
        features = self._preprocess([inputs["text"]])
        return {"embedding": map_in_chunks(self._vectors, features)}

    def _pool(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The encoder's inputs [batch, seq_len] -> float32 [batch, hidden]."""
        if self._pooling == "pooled":
            return tf.cast(self.model.pooled(features), tf.float32)
        if self._pooling == "cls":
            first = tf.zeros_like(features["input_mask"][:, :1])
            return tf.cast(self.model.encode_at(features, first), tf.float32)
        encoded = self.model.encode(features)
        tokens = tf.reduce_sum(tf.cast(features["input_mask"], tf.float32), axis=1, keepdims=True)
        # The layer is 0 at padding.
        total = tf.reduce_sum(tf.cast(encoded.restore(), tf.float32), axis=1)
        return tf.math.divide_no_nan(total, tokens)
