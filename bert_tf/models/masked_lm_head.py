"""The masked language model's head: transform, then scores against the word embeddings."""

from typing import Any

import keras
import tensorflow as tf

from bert_tf.encoder.layer_norm import LayerNorm
from bert_tf.encoder.linear import Linear


@keras.saving.register_keras_serializable("bert_tf")
class MaskedLMHead(keras.layers.Layer):
    """LN(activation(x W + b)) E^T + output_bias, E being the encoder's word embeddings.

    W maps to the width of E. Source: `get_masked_lm_output` in google-research/bert
    `run_pretraining.py`.
    """

    def __init__(
        self, activation: str, initializer_range: float, layer_norm_eps: float, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self._arguments: dict[str, Any] = {
            "activation": activation,
            "initializer_range": initializer_range,
            "layer_norm_eps": layer_norm_eps,
        }
        self.layer_norm = LayerNorm(layer_norm_eps, name="layer_norm", dtype=self.dtype_policy)

    def build(self, tokens_shape: tuple[int | None, int], table_shape: tuple[int, int]) -> None:
        """Creates the weights for tokens [n, hidden] and a table of [vocab_size, width]."""
        vocab_size, width = table_shape
        self.transform = Linear(
            width,
            self._arguments["activation"],
            self._arguments["initializer_range"],
            name="transform",
            dtype=self.dtype_policy,
        )
        self.transform.build(tokens_shape)
        self.layer_norm.build((None, width))
        self.output_bias = self.add_weight(
            name="output_bias", shape=(vocab_size,), initializer="zeros"
        )

    def call(self, tokens: tf.Tensor, table: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Tokens [n, hidden] and table [vocab_size, width] -> float32 logits [n, vocab_size]."""
        tokens = self.layer_norm(self.transform(tokens, training=training))
        scores = tf.matmul(tokens, tf.cast(table, tokens.dtype), transpose_b=True)
        return tf.cast(tf.nn.bias_add(scores, self.output_bias), tf.float32)

    def compute_output_shape(
        self, tokens_shape: tuple[int | None, int], table_shape: tuple[int, int]
    ) -> tuple[int | None, int]:
        """[n, vocab_size]."""
        return (tokens_shape[0], table_shape[0])

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | self._arguments
