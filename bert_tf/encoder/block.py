"""BERT's block: attention and a feed-forward layer, each followed by a sum and a LayerNorm."""

from typing import Any

import keras
import tensorflow as tf

from bert_tf.encoder.attention import SelfAttention
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.layers import Dropout, LayerNorm, Linear
from bert_tf.encoder.layout import TokenLayout


@keras.saving.register_keras_serializable("bert_tf")
class TransformerBlock(keras.layers.Layer):
    """LN(x + dropout(attention(x))), then LN(x + dropout(feed_forward(x)))."""

    def __init__(self, config: EncoderConfig, index: int = 0, **kwargs: Any):
        kwargs.setdefault("name", f"layer_{index}")
        super().__init__(autocast=False, **kwargs)  # `bias` stays in float32
        self.config = config
        self.index = index
        policy = {"dtype": self.dtype_policy}
        dropout, epsilon = config.hidden_dropout_prob, config.layer_norm_eps
        deviation = config.initializer_range
        self.attention = SelfAttention(
            config.num_attention_heads,
            config.attention_probs_dropout_prob,
            deviation,
            name="attention",
            **policy,
        )
        self.attention_dropout = Dropout(dropout, name="attention_dropout", **policy)
        self.attention_layer_norm = LayerNorm(epsilon, name="attention_layer_norm", **policy)
        self.intermediate = Linear(
            config.intermediate_size, config.hidden_act, deviation, name="intermediate", **policy
        )
        self.output_projection = Linear(
            config.hidden_size, None, deviation, name="output", **policy
        )
        self.output_dropout = Dropout(dropout, name="output_dropout", **policy)
        self.output_layer_norm = LayerNorm(epsilon, name="output_layer_norm", **policy)

    def build(self, input_shape: tuple[int | None, int]) -> None:
        norms = self.attention_layer_norm, self.output_layer_norm
        for layer in (self.attention, self.intermediate, *norms):
            layer.build((None, input_shape[-1]))
        self.output_projection.build((None, self.config.intermediate_size))

    def call(
        self,
        tokens: tf.Tensor,
        layout: TokenLayout,
        bias: tf.Tensor,
        training: bool = False,
        positions: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """As `SelfAttention.call`, whose intermediates it returns too."""
        mixed, intermediates = self.attention(
            tokens, layout=layout, bias=bias, training=training, positions=positions
        )
        if positions is not None:
            tokens = layout.select(tokens, positions)
        drawn = self.attention_dropout.draw(tf.shape(mixed), training)
        tokens = self.attention_layer_norm(mixed, tokens, drawn=drawn, training=training)
        expanded = self.intermediate(tokens, training=training)
        expanded = self.output_projection(expanded, training=training)
        drawn = self.output_dropout.draw(tf.shape(expanded), training)
        tokens = self.output_layer_norm(expanded, tokens, drawn=drawn, training=training)
        return tokens, intermediates

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"config": self.config.to_dict(), "index": self.index}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "TransformerBlock":
        return cls(**config | {"config": EncoderConfig(**config["config"])})
