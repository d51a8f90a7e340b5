"""ModernBERT's architecture (Warner et al. 2024, arXiv 2412.13663) on `bert_tf`'s encoder.

It shows what another architecture takes: an embedding layer and a block, in a file of its own.
Normalization comes before each sublayer (pre-norm), positions are rotations of query and key (RoPE,
Su et al. 2021), the feed-forward layer is gated (GeGLU, Shazeer 2020), no layer has a bias, and of
three blocks two attend to a window around each token. The reference is transformers'
`modeling_modernbert.py`.
"""

from typing import Any

import keras
import tensorflow as tf

from bert_tf.encoder.attention import attention_probabilities, bias_of
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder
from bert_tf.encoder.layers import LayerNorm, Linear, truncated_normal
from bert_tf.encoder.layout import TokenLayout

GLOBAL_EVERY = 3
GLOBAL_THETA, LOCAL_THETA = 160_000.0, 10_000.0


def modern_bert(config: EncoderConfig, layout: str = "unpadded", **options: Any) -> Encoder:
    """ModernBERT's encoder with new weights.

    Args:
        config: its sizes; there are no segments and no dropout.
        layout, options: as for `Encoder`.
    """
    parts = {"embeddings": ModernEmbeddings, "block": ModernBlock} | options
    return Encoder(config, layout, **parts)


@keras.saving.register_keras_serializable("modern_bert")
class ModernEmbeddings(keras.layers.Layer):
    """A vector of each piece, normalized. The blocks see positions, and segments do not exist."""

    def __init__(self, config: EncoderConfig, **kwargs: Any):
        super().__init__(name="embeddings", **kwargs)
        self.config = config
        self.norm = Norm(config.layer_norm_eps, name="norm", dtype=self.dtype_policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the table, [vocab_size, hidden]."""
        self.table = self.add_weight(
            name="word_embeddings",
            shape=(self.config.vocab_size, self.config.hidden_size),
            initializer=truncated_normal(self.config.initializer_range),
            autocast=False,
        )
        self.norm.build((None, self.config.hidden_size))

    def call(
        self,
        word_ids: tf.Tensor,
        positions: tf.Tensor,
        type_ids: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """int32 [tokens] -> [tokens, hidden]."""
        return self.norm(tf.gather(self.table.value, word_ids))


@keras.saving.register_keras_serializable("modern_bert")
class ModernBlock(keras.layers.Layer):
    """x + attention(LN(x)), then x + GeGLU(LN(x)); the last block ends with the encoder's LN.

    Attributes:
        reach: how many tokens a local block sees on each side of a token.
    """

    reach = 64

    def __init__(self, config: EncoderConfig, index: int, **kwargs: Any):
        super().__init__(name=f"layer_{index}", autocast=False, **kwargs)
        policy, hidden = {"dtype": self.dtype_policy}, config.hidden_size
        self.heads = config.num_attention_heads
        self.is_global = index % GLOBAL_EVERY == 0
        # The embeddings are normalized already.
        self.attention_norm = None
        if index > 0:
            self.attention_norm = Norm(config.layer_norm_eps, name="attention_norm", **policy)
        self.query_key_value = Product(3 * hidden, name="query_key_value", **policy)
        self.attention_output = Product(hidden, name="attention_output", **policy)
        self.mlp_norm = Norm(config.layer_norm_eps, name="mlp_norm", **policy)
        self.mlp_input = Product(config.intermediate_size, "gelu", name="mlp_input", **policy)
        self.mlp_gate = Product(config.intermediate_size, name="mlp_gate", **policy)
        self.mlp_output = Product(hidden, name="mlp_output", **policy)
        self.final_norm = None
        if index == config.num_hidden_layers - 1:
            self.final_norm = Norm(config.layer_norm_eps, name="final_norm", **policy)

    def build(self, input_shape: tuple[int | None, int]) -> None:
        """Creates the weights for tokens [tokens, hidden]."""
        tokens = (None, input_shape[-1])
        for layer in (self.query_key_value, self.attention_output, self.mlp_input, self.mlp_gate):
            layer.build(tokens)
        self.mlp_output.build((None, self.mlp_input.units))
        for norm in (self.attention_norm, self.mlp_norm, self.final_norm):
            if norm is not None:
                norm.build(tokens)

    def call(
        self,
        tokens: tf.Tensor,
        layout: TokenLayout,
        bias: tf.Tensor,
        training: bool = False,
        positions: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """See `bert_tf.encoder.encoder.TransformerBlock.call`."""
        normalized = tokens if self.attention_norm is None else self.attention_norm(tokens)
        mixed, probabilities = self._attend(normalized, layout, bias, training)
        tokens += mixed
        if positions is not None:
            tokens = layout.select(tokens, positions)
        normalized = self.mlp_norm(tokens)
        gated = self.mlp_input(normalized, training=training) * self.mlp_gate(normalized)
        tokens += self.mlp_output(gated)
        if self.final_norm is not None:
            tokens = self.final_norm(tokens)
        return tokens, {"attention_probabilities": probabilities}

    def _attend(
        self, tokens: tf.Tensor, layout: TokenLayout, bias: tf.Tensor, training: bool
    ) -> tuple[tf.Tensor, tf.Tensor]:
        query, key, value = layout.to_heads(self.query_key_value(tokens), self.heads, 3)
        theta = GLOBAL_THETA if self.is_global else LOCAL_THETA
        angles = _angles(tf.shape(query)[2], query.shape[3], theta)
        query, key = _rotated(query, angles), _rotated(key, angles)
        if not self.is_global:
            places = tf.range(tf.shape(query)[2])
            bias += bias_of(tf.abs(places[:, None] - places) <= self.reach)
        probabilities = attention_probabilities(query, key, bias, for_gradient=training)
        mixed = layout.from_heads(tf.matmul(probabilities, value))
        return self.attention_output(mixed), probabilities


class Product(Linear):
    """A `Linear` without a bias; the zeros are a constant, so that the same kernels fuse."""

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates `kernel` [input_size, units]."""
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], self.units),
            initializer=truncated_normal(self.initializer_range),
        )

    @property
    def bias(self) -> tf.Tensor:
        """Zeros [units]."""
        return tf.zeros([self.units], self.compute_dtype)


class Norm(LayerNorm):
    """A `LayerNorm` that scales and does not shift."""

    beta = 0.0

    def build(self, x_shape: tuple[int | None, ...], residual_shape: Any = None) -> None:
        """Creates `gamma` [hidden]."""
        self.gamma = self.add_weight(
            name="gamma", shape=(x_shape[-1],), initializer="ones", dtype="float32", autocast=False
        )


def _angles(length: tf.Tensor, head_size: int, theta: float) -> tf.Tensor:
    """float32 [length, head_size / 2]: by how much each pair of numbers is turned at a place."""
    powers = tf.range(0, head_size, 2, tf.float32) / head_size
    return tf.range(tf.cast(length, tf.float32))[:, None] / tf.pow(theta, powers)


def _rotated(x: tf.Tensor, angles: tf.Tensor) -> tf.Tensor:
    """Number i of each half of [..., length, head_size] is turned with that of the other half."""
    cos = tf.concat([tf.cos(angles)] * 2, axis=-1)
    sin = tf.concat([-tf.sin(angles), tf.sin(angles)], axis=-1)
    other = tf.roll(x, x.shape[-1] // 2, axis=-1)
    return x * tf.cast(cos, x.dtype) + other * tf.cast(sin, x.dtype)
