"""The sum of word, position and segment embeddings (paper, figure 2), in ELECTRA projected."""

from typing import Any

import keras
import tensorflow as tf

from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.layers import Dropout, LayerNorm, Linear, truncated_normal


@keras.saving.register_keras_serializable("bert_tf")
class Embeddings(keras.layers.Layer):
    """Token ids -> vectors: word + position + segment, normalized, with dropout."""

    def __init__(self, config: EncoderConfig, **kwargs: Any):
        kwargs.setdefault("name", "embeddings")
        super().__init__(**kwargs)
        self.config = config
        policy = {"dtype": self.dtype_policy}
        self.layer_norm = LayerNorm(config.layer_norm_eps, name="layer_norm", **policy)
        self.dropout = Dropout(config.hidden_dropout_prob, name="dropout", **policy)
        self.projection = None
        if config.embedding_width != config.hidden_size:
            self.projection = Linear(
                config.hidden_size, None, config.initializer_range, name="projection", **policy
            )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = self.config.embedding_width

        def table(name: str, rows: int) -> keras.Variable:
            return self.add_weight(
                name=name,
                shape=(rows, width),
                initializer=truncated_normal(self.config.initializer_range),
                autocast=False,
            )

        self.word_embeddings = table("word_embeddings", self.config.vocab_size)
        self.position_embeddings = table("position_embeddings", self.config.max_position_embeddings)
        self.token_type_embeddings = None
        if self.config.type_vocab_size:
            self.token_type_embeddings = table("token_type_embeddings", self.config.type_vocab_size)
        self.layer_norm.build((None, width))
        if self.projection is not None:
            self.projection.build((None, width))

    def call(
        self, word_ids: tf.Tensor, positions: tf.Tensor, type_ids: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Three int32 [tokens] -> [tokens, hidden]; rows are added up in float32."""
        # The rows are gathered from a tensor, since TensorFlow copies a whole table on every other
        # read once rows were gathered from the variable itself.
        tables = self.word_embeddings, self.position_embeddings, self.token_type_embeddings
        word, position, *token_type = (
            tf.cast(tf.gather(tf.convert_to_tensor(table), ids), tf.float32)
            for table, ids in zip(tables, (word_ids, positions, type_ids), strict=True)
            if table is not None
        )
        vectors = self.layer_norm(sum(token_type, word + position))
        vectors = self.dropout(vectors, training=training)
        return vectors if self.projection is None else self.projection(vectors)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (*input_shape, self.config.hidden_size)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"config": self.config.to_dict()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Embeddings":
        return cls(**config | {"config": EncoderConfig(**config["config"])})
