"""One block of the encoder: attention and a feed-forward layer, normalized after each sum."""

from typing import Any

import keras
import tensorflow as tf

from bert_tf.layers.attention import SelfAttention
from bert_tf.layers.dropout import Dropout
from bert_tf.layers.layer_norm import LayerNorm
from bert_tf.layers.layout import TokenLayout
from bert_tf.layers.linear import Linear


@keras.saving.register_keras_serializable("bert_tf")
class TransformerBlock(keras.layers.Layer):
    """LN(x + dropout(attention(x))), then LN(x + dropout(feed_forward(x))).

    Args, which `EncoderConfig` calls otherwise:
        num_heads: `num_attention_heads`.
        intermediate_size: the same.
        activation: `hidden_act`.
        dropout: `hidden_dropout_prob`, of what attention and the feed-forward layer give.
        attention_dropout: `attention_probs_dropout_prob`, of the attention's probabilities.
        initializer_range: the same.
        layer_norm_eps: the same.
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_size: int,
        activation: str,
        dropout: float,
        attention_dropout: float,
        initializer_range: float,
        layer_norm_eps: float,
        **kwargs: Any,
    ):
        super().__init__(autocast=False, **kwargs)  # `bias` stays in float32
        self._arguments: dict[str, Any] = {
            "num_heads": num_heads,
            "intermediate_size": intermediate_size,
            "activation": activation,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "initializer_range": initializer_range,
            "layer_norm_eps": layer_norm_eps,
        }
        policy = {"dtype": self.dtype_policy}
        self.attention = SelfAttention(
            num_heads, attention_dropout, initializer_range, name="attention", **policy
        )
        self.mixed_dropout = Dropout(dropout, name="attention_dropout", **policy)
        self.attention_layer_norm = LayerNorm(layer_norm_eps, name="attention_layer_norm", **policy)
        self.intermediate = Linear(
            intermediate_size, activation, initializer_range, name="intermediate", **policy
        )
        self.output_dropout = Dropout(dropout, name="output_dropout", **policy)
        self.output_layer_norm = LayerNorm(layer_norm_eps, name="output_layer_norm", **policy)

    def build(self, input_shape: tuple[int | None, int]) -> None:
        """Creates the weights for tokens [tokens, hidden]."""
        hidden = input_shape[-1]
        self.output_projection = Linear(
            hidden,
            initializer_range=self._arguments["initializer_range"],
            name="output",
            dtype=self.dtype_policy,
        )
        self.attention.build((None, hidden))
        self.attention_layer_norm.build((None, hidden))
        self.intermediate.build((None, hidden))
        self.output_projection.build((None, self._arguments["intermediate_size"]))
        self.output_layer_norm.build((None, hidden))

    def call(
        self,
        tokens: tf.Tensor,
        layout: TokenLayout,
        bias: tf.Tensor,
        training: bool = False,
        positions: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """[tokens, hidden] -> [tokens, hidden], or [batch * n, hidden] at `positions` [batch, n].

        `layout`, `bias` and `positions` as in `SelfAttention`.
        """
        mixed = self.attention(
            tokens, layout=layout, bias=bias, training=training, positions=positions
        )
        mixed = self.mixed_dropout(mixed, training=training)
        if positions is not None:
            tokens = layout.select(tokens, positions)
        tokens = self.attention_layer_norm(mixed, tokens)
        expanded = self.output_projection(self.intermediate(tokens, training=training))
        expanded = self.output_dropout(expanded, training=training)
        return self.output_layer_norm(expanded, tokens)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The input's shape."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return super().get_config() | self._arguments
