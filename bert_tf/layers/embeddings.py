"""The sum of word, position and segment embeddings (paper, figure 2)."""

from typing import Any

import keras
import tensorflow as tf

from bert_tf.layers.dropout import Dropout
from bert_tf.layers.layer_norm import LayerNorm
from bert_tf.layers.linear import truncated_normal


@keras.saving.register_keras_serializable("bert_tf")
class Embeddings(keras.layers.Layer):
    """Token ids -> vectors: word + position + segment, normalized, with dropout.

    Args: as in `EncoderConfig`, `dropout` being its `hidden_dropout_prob`.
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        max_position_embeddings: int,
        type_vocab_size: int,
        dropout: float,
        initializer_range: float,
        layer_norm_eps: float,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.max_position_embeddings = max_position_embeddings
        self.type_vocab_size = type_vocab_size
        self.dropout_rate = dropout
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.layer_norm = LayerNorm(layer_norm_eps, name="layer_norm", dtype=self.dtype_policy)
        self.dropout = Dropout(dropout, name="dropout", dtype=self.dtype_policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the tables for ids [tokens]."""

        def table(name: str, rows: int) -> keras.Variable:
            return self.add_weight(
                name=name,
                shape=(rows, self.hidden_size),
                initializer=truncated_normal(self.initializer_range),
                autocast=False,
            )

        self.word_embeddings = table("word_embeddings", self.vocab_size)
        self.position_embeddings = table("position_embeddings", self.max_position_embeddings)
        self.token_type_embeddings = table("token_type_embeddings", self.type_vocab_size)
        self.layer_norm.build((None, self.hidden_size))

    def call(
        self,
        word_ids: tf.Tensor,
        positions: tf.Tensor,
        type_ids: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Three int32 [tokens] -> [tokens, hidden].

        Rows are added up in float32, in whatever precision they are stored.
        """
        word, position, token_type = (
            tf.cast(tf.gather(table.value, ids), tf.float32)
            for table, ids in (
                (self.word_embeddings, word_ids),
                (self.position_embeddings, positions),
                (self.token_type_embeddings, type_ids),
            )
        )
        vectors = self.layer_norm(word + position + token_type)
        return self.dropout(vectors, training=training)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The shape of the ids and the hidden axis."""
        return (*input_shape, self.hidden_size)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return super().get_config() | {
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "max_position_embeddings": self.max_position_embeddings,
            "type_vocab_size": self.type_vocab_size,
            "dropout": self.dropout_rate,
            "initializer_range": self.initializer_range,
            "layer_norm_eps": self.layer_norm_eps,
        }
