"""A form of the encoder in which two threads share each layer.

A layer is divided as Megatron-LM divides it over GPUs (Shoeybi et al. 2019, section 3): a shard has
half of the heads, and half of the columns of the feed-forward layer. The shards are summed after
either part. Between two sums a thread can compute its shard by itself, so that threads wait for
each other twice a layer instead of in each operation.
"""

import keras
import numpy as np
import tensorflow as tf

from bert_tf.encoder.attention import SelfAttention
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder, TransformerBlock
from bert_tf.encoder.layers import LayerNorm, Linear
from bert_tf.encoder.layout import TokenLayout
from bert_tf.export.fused_norms import unscale
from bert_tf.export.precision import with_encoder

SHARDS = 2


def can_shard(config: EncoderConfig) -> bool:
    """Whether shards would be equal, and threads have no other work, such as two towers."""
    numbers = config.num_attention_heads, config.intermediate_size
    return config.attention != "side_by_side" and not any(each % SHARDS for each in numbers)


def sharded(encoder: Encoder) -> Encoder:
    """A copy in shards of an encoder in the form of `bert_tf.export.fused_norms`."""
    copy = with_encoder(encoder, encoder.copied(block=ShardedBlock))
    for tower, whole in zip(copy.towers().values(), encoder.towers().values(), strict=True):
        unscale(tower)
        for block, whole_block in zip(tower.blocks, whole.blocks, strict=True):
            block.take(whole_block)
    return copy


class ShardedBlock(keras.layers.Layer):
    """A `TransformerBlock` in shards; it does not train."""

    def __init__(self, config: EncoderConfig, index: int, dtype: keras.DTypePolicy):
        # `bias` stays in float32.
        super().__init__(name=f"layer_{index}", dtype=dtype, autocast=False)
        heads, hidden = config.num_attention_heads, config.hidden_size
        self._columns = config.intermediate_size // SHARDS
        self.attentions = [
            SelfAttention(
                heads // SHARDS, 0.0, head_size=hidden // heads, name=f"attention_{i}", dtype=dtype
            )
            for i in range(SHARDS)
        ]
        self.attention_layer_norm = LayerNorm(name="attention_layer_norm", dtype=dtype)
        self.intermediates = [
            Linear(self._columns, config.hidden_act, name=f"intermediate_{i}", dtype=dtype)
            for i in range(SHARDS)
        ]
        self.output_projections = [
            Linear(hidden, name=f"output_{i}", dtype=dtype) for i in range(SHARDS)
        ]
        self.output_layer_norm = LayerNorm(name="output_layer_norm", dtype=dtype)

    def build(self, input_shape: tuple[int | None, int]) -> None:
        tokens = (None, input_shape[-1])
        norms = [self.attention_layer_norm, self.output_layer_norm]
        layers: list[keras.Layer] = [*self.attentions, *self.intermediates, *norms]
        for layer in layers:
            layer.build(tokens)
        for projection in self.output_projections:
            projection.build((None, self._columns))

    def take(self, block: TransformerBlock) -> None:
        """Copies the weights of a block, and its form."""
        whole = block.attention
        kernel, bias = (
            # The columns are those of all heads of the query, then of the key, then of the value.
            np.reshape(each, [*each.shape[:-1], 3, SHARDS, -1])
            for each in whole.query_key_value.get_weights()
        )
        up, up_bias = block.intermediate.get_weights()
        for i, attention in enumerate(self.attentions):
            own = kernel[:, :, i].reshape(len(kernel), -1), bias[:, i].reshape(-1)
            attention.query_key_value.set_weights([*own])
            columns = slice(i * self._columns, (i + 1) * self._columns)
            self.intermediates[i].set_weights([up[:, columns], up_bias[columns]])
        _divide_rows(whole.output_projection, [each.output_projection for each in self.attentions])
        _divide_rows(block.output_projection, self.output_projections)
        for name in ("attention_layer_norm", "output_layer_norm"):
            mine, theirs = getattr(self, name), getattr(block, name)
            mine.set_weights(theirs.get_weights())
            mine.epsilon, mine.fused = theirs.epsilon, theirs.fused

    def call(
        self,
        tokens: tf.Tensor,
        layout: TokenLayout,
        bias: tf.Tensor,
        training: bool = False,
        positions: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        # The dict of intermediates is empty.
        mixed = [
            attention(tokens, layout=layout, bias=bias, positions=positions)[0]
            for attention in self.attentions
        ]
        if positions is not None:
            tokens = layout.select(tokens, positions)
        tokens = _normalized(self.attention_layer_norm, mixed, tokens)
        pairs = zip(self.intermediates, self.output_projections, strict=True)
        expanded = [project(expand(tokens)) for expand, project in pairs]
        return _normalized(self.output_layer_norm, expanded, tokens), {}


def _normalized(norm: LayerNorm, shards: list[tf.Tensor], residual: tf.Tensor) -> tf.Tensor:
    """LayerNorm of the shards' sum plus the residual, which the last shard's product adds.

    The rest of the sum is in float32, which is more exact than bfloat16 and as fast: TensorFlow's
    kernels add bfloat16 numbers one by one.
    """
    *others, last = shards
    parts = tf.add_n(others), tf.add_n([last, residual])
    return norm(*(tf.cast(part, tf.float32) for part in parts))


def _divide_rows(whole: Linear, shards: list[Linear]) -> None:
    """Gives each shard its rows of a kernel, and its share of the bias.

    With a bias of zero, TensorFlow would not fuse the residual into the last shard's product.
    """
    kernel, bias = whole.get_weights()
    for shard, rows in zip(shards, np.split(kernel, len(shards)), strict=True):
        shard.set_weights([rows, bias / len(shards)])
