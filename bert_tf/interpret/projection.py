"""Vectors of texts seen in two dimensions: principal components (Pearson 1901)."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.asking import batches_by_length
from bert_tf.encoder.encoder import INPUTS, Encoded, Encoder


def plane_of(vectors: np.ndarray) -> Any:
    """scikit-learn's `PCA` to two dimensions of three or more vectors, float [vectors, hidden]."""
    from sklearn.decomposition import PCA

    with np.errstate(invalid="ignore"):  # equal vectors have no variance to share
        return PCA(n_components=2).fit(vectors.astype(np.float64))


def pooled(encoder: Encoder, encoded: Encoded, mask: tf.Tensor) -> tf.Tensor:
    """[rows, hidden]: what the heads for whole texts read."""
    return encoder.pool(encoded.select(encoder.pooled_positions(mask)), mask)


def mean(encoder: Encoder, encoded: Encoded, mask: tf.Tensor) -> tf.Tensor:
    """[rows, hidden]: the mean of the last layer over all tokens, special ones included."""
    vectors = encoded.restore()
    counts = tf.reduce_sum(tf.cast(mask, vectors.dtype), axis=1, keepdims=True)
    return tf.reduce_sum(vectors, axis=1) / tf.maximum(counts, 1)


def row_vectors(
    encoder: Encoder,
    pooling: Callable[[Encoder, Encoded, tf.Tensor], tf.Tensor],
    inputs_of: Callable[[np.ndarray], Mapping[str, np.ndarray]],
    lengths: np.ndarray,
    batch_size: int = 32,
) -> np.ndarray:
    """float32 [rows, hidden]: a vector for each input, by `pooled` or `mean`.

    `inputs_of` gives the encoder's inputs [batch, seq_len] for some rows of `lengths` tokens.
    """
    form = {name: tf.TensorSpec([None, None], tf.int32) for name in INPUTS}

    @tf.function(input_signature=[form], autograph=False)
    def vectors_of(inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        encoded = encoder.encode(inputs, training=False)
        return tf.cast(pooling(encoder, encoded, inputs["input_mask"]), tf.float32)

    vectors = np.zeros([len(lengths), encoder.config.output_size], np.float32)
    for chosen in batches_by_length(lengths, batch_size):
        vectors[chosen] = vectors_of(inputs_of(chosen))
    return vectors
