"""Vectors of texts seen in two dimensions: principal components (Pearson 1901)."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.data.batching import batches_by_length
from bert_tf.models import Encoder
from bert_tf.models.encoder import INPUTS, Encoded


class Plane(NamedTuple):
    """Two directions in which vectors differ most.

    Attributes:
        centre: float64 [hidden], the mean of the vectors.
        axes: float64 [2, hidden], of length 1.
        shares: float64 [2], the share of the vectors' variance along each.
    """

    centre: np.ndarray
    axes: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray) -> "Plane":
        """The plane of float [vectors, hidden], by singular values.

        An axis may point either way; here its largest part is positive.
        """
        vectors = vectors.astype(np.float64)
        centre = vectors.mean(axis=0)
        _, lengths, axes = np.linalg.svd(vectors - centre, full_matrices=False)
        largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
        axes = axes * np.where(largest < 0, -1, 1)
        variance = lengths**2
        return cls(centre, axes[:2], variance[:2] / max(variance.sum(), np.finfo(float).tiny))

    def places(self, vectors: np.ndarray) -> np.ndarray:
        """float64 [vectors, 2]: where vectors are seen in the plane."""
        return (vectors - self.centre) @ self.axes.T


def pooled(encoder: Encoder, encoded: Encoded, mask: tf.Tensor) -> tf.Tensor:
    """[rows, hidden]: what the heads for whole texts read."""
    return encoder.pool(encoded.select(encoder.pooled_places(mask)), mask)


def mean(encoder: Encoder, encoded: Encoded, mask: tf.Tensor) -> tf.Tensor:
    """[rows, hidden]: the mean of the last layer over all tokens, special ones included."""
    del encoder
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
    """float32 [rows, hidden]: a vector for each input.

    Args:
        encoder: the encoder.
        pooling: `pooled` or `mean`.
        inputs_of: the encoder's inputs [batch, seq_len] for some rows.
        lengths: int [rows], tokens of each.
        batch_size: rows of a batch; those of similar length share one.
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
