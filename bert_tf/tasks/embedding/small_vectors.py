"""Vectors that take less space: with fewer numbers, in 8 bits or in one bit for each number.

The values are those of sentence-transformers 6.2.0, `quantize_embeddings` in `util/quantization.py`
and `truncate_embeddings`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.embedder import VECTORS
from bert_tf.errors import UserError

FLOAT32, INT8, _ = VECTORS
# The lowest and the highest number of each place, two lists.
Ranges = Sequence[Sequence[float]]


def smaller(
    vectors: Any, truncate_dim: int | None = None, form: str = FLOAT32, ranges: Ranges | None = None
) -> tf.Tensor:
    """Vectors, float32 [batch, width], cut to their first numbers and stored in fewer bits. They
    are not normalized again. In "int8", -128 is the lowest number of the ranges and 127 the
    highest. "binary" has a bit for each number, 1 if it is positive; 128 is subtracted from bytes.
    """
    vectors = tf.convert_to_tensor(vectors, tf.float32)[:, :truncate_dim]
    if form == FLOAT32:
        return vectors
    if form == INT8:
        if ranges is None:
            raise UserError(
                "int8 vectors require the ranges of their numbers; call calibrate(texts), or fit"
            )
        low, high = (np.array(each, np.float32)[:truncate_dim] for each in ranges)
        steps = (high - low) / np.float32(255)
        places = tf.floor((vectors - low) / np.where(steps == 0, np.float32(1), steps))
        return tf.cast(tf.clip_by_value(places, 0.0, 255.0) - 128.0, tf.int8)
    width = vectors.shape[1]
    bits = tf.pad(tf.cast(vectors > 0, tf.float32), [[0, 0], [0, -width % 8]])
    # These are products and sums of whole numbers, because LiteRT has such operations.
    values = tf.reshape(bits, [-1, -(-width // 8), 8]) * (2.0 ** np.arange(7.0, -1.0, -1.0))
    return tf.cast(tf.reduce_sum(values, axis=2) - 128.0, tf.int8)


def ranges_of(vectors: np.ndarray) -> list[list[float]]:
    """The lowest and the highest number of each place of vectors, float32 [batch, width]."""
    if len(vectors) < 2 or not np.isfinite(vectors).all():
        raise UserError("int8 calibration requires two or more texts, all with finite vectors")
    return [vectors.min(axis=0).tolist(), vectors.max(axis=0).tolist()]


def check(width: int, truncate_dim: int | None = None, ranges: Ranges | None = None) -> None:
    """Raises UserError if the dimension or the ranges do not fit vectors of `width` numbers."""
    if truncate_dim is not None and not 1 <= truncate_dim <= width:
        raise UserError(
            f"truncate_dim is {truncate_dim}, but vectors of this model have 1 to {width} numbers"
        )
    if ranges is not None and not _are_ranges(ranges, width):
        raise UserError(
            f"ranges must be the lowest and the highest of each of {width} numbers, two lists"
        )


def _are_ranges(given: Any, width: int) -> bool:
    """Whether a value, maybe from a file of unknown origin, is valid ranges of `width` numbers."""
    try:
        low, high = (np.array([*each], np.float64) for each in given)
    except (TypeError, ValueError):
        return False
    if not low.shape == high.shape == (width,):
        return False
    return bool(np.isfinite([low, high]).all() and (low <= high).all())


def asked_for(
    vectors: np.ndarray,
    settings: Mapping[str, Any],
    truncate_dim: int | None = None,
    form: str | None = None,
) -> np.ndarray:
    """Vectors of a model with these settings, in the form that one call of `predict` requires."""
    given = settings.get("vectors", FLOAT32)
    if vectors.dtype == np.int8:
        if form not in (None, given) or truncate_dim != settings.get("truncate_dim"):
            raise UserError(
                f"this export returns {given} vectors, whose form is fixed; use the model that it "
                "was exported from"
            )
        return vectors
    if truncate_dim in (None, vectors.shape[1]) and (form or given) == FLOAT32:
        return vectors
    # The ranges cover all numbers, but the model may return only the first ones.
    ranges = settings.get("ranges")
    ranges = ranges and [each[: vectors.shape[1]] for each in ranges]
    check(vectors.shape[1], truncate_dim)
    return smaller(vectors, truncate_dim, form or given, ranges).numpy()
