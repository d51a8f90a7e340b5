"""A form of the encoder for CPUs, in which each LayerNorm of a block is one operation.

TensorFlow's graph optimizer replaces the operations of a LayerNorm by oneDNN's `_MklLayerNorm`
(`FindMklLayerNorm` in core/grappler/optimizers/remapper.cc). This replacement has two faults in
TensorFlow 2.20:

- `_MklLayerNorm` always adds 1e-3 to the variance, whatever the graph says; BERT adds 1e-12. But
  LayerNorm of c * x with c² * epsilon equals LayerNorm of x with epsilon. So each sum before a
  LayerNorm is multiplied by c, and the weights before and after the sum absorb that factor.
- The optimizer also creates `_MklLayerNorm` on GPUs, which have no kernel for it. So a model in
  this form must be placed on the CPU.
"""

import dataclasses
import math
from collections.abc import Iterable

import keras

from bert_tf.encoder.encoder import Embeddings, Encoded, Encoder, Inputs, TransformerBlock
from bert_tf.encoder.layers import FUSED_EPSILON, FUSED_TYPES


def can_fuse_norms(encoder: Encoder) -> bool:
    """Whether it has BERT's blocks, and a precision of `_MklLayerNorm` that holds large numbers."""
    has_blocks_of_bert = encoder.factories == {"embeddings": Embeddings, "block": TransformerBlock}
    return has_blocks_of_bert and encoder.compute_dtype in FUSED_TYPES


def fuse_norms(encoder: Encoder) -> None:
    """Permanently changes an encoder that nothing else uses; its outputs stay the same.

    The residual stream, from the embeddings to the last block's last sum, is multiplied by c.
    """
    scale = _scale(encoder.config.layer_norm_eps)
    for tower in encoder.towers().values():
        last = tower.embeddings.projection
        _multiply((tower.embeddings.layer_norm if last is None else last).weights, scale)
        for block in tower.blocks:
            _multiply([block.attention.query_key_value.kernel], 1 / scale)
            _multiply(block.attention.output_projection.weights, scale)
            _multiply(block.attention_layer_norm.weights, scale)
            _multiply([block.intermediate.kernel], 1 / scale)
            _multiply(block.output_projection.weights, scale)
            if block is not tower.blocks[-1]:
                _multiply(block.output_layer_norm.weights, scale)
            block.attention_layer_norm.fused = block.output_layer_norm.fused = True
        unscale(tower)


def unscale(tower: Encoder) -> None:
    """Replaces `encode` of an encoder in this form by one that divides the scaled outputs by c.

    The last block's outputs are not multiplied, so `encode_at` stays as it is.
    """
    usual, scale = tower.encode, _scale(tower.config.layer_norm_eps)

    def encode(inputs: Inputs, training: bool = False, with_intermediates: bool = False) -> Encoded:
        encoded = usual(inputs, training, with_intermediates)
        *scaled, last = encoded.layers
        layers = [*(layer / scale for layer in scaled), last]
        return dataclasses.replace(encoded, embeddings=encoded.embeddings / scale, layers=layers)

    tower.__dict__["encode"] = encode


def _scale(epsilon: float) -> float:
    """The factor c, for which c² * epsilon is FUSED_EPSILON."""
    exact = math.sqrt(FUSED_EPSILON / epsilon)
    round_number = 2.0 ** round(math.log2(exact))
    # Smaller differences of epsilon are negligible, and a power of two changes only exponents.
    is_same = abs(FUSED_EPSILON / round_number**2 - epsilon) < 1e-9
    return round_number if is_same else exact


def _multiply(weights: Iterable[keras.Variable], factor: float) -> None:
    for weight in weights:
        weight.assign(weight * factor)
