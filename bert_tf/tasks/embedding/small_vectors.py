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
# The settings of an embedder that say what its vectors are.
SETTINGS = ("truncate_dim", "vectors", "ranges")
# The lowest and the highest number of each place, two lists.
Ranges = Sequence[Sequence[float]]


def smaller(
    vectors: Any, truncate_dim: int | None = None, form: str = FLOAT32, ranges: Ranges | None = None
) -> tf.Tensor:
    """Vectors cut to their first numbers, which are then stored in fewer bits.

    >>> vectors = [[0.5, -1.0, 1.0, 0.1, -0.2, 0.3, 0.4, 0.5, 9.0]]
    >>> smaller(vectors, truncate_dim=2).numpy()
    array([[ 0.5, -1. ]], dtype=float32)
    >>> smaller(vectors, 2, "int8", [[-1.0, -1.0], [1.0, 1.0]]).numpy()
    array([[  63, -128]], dtype=int8)
    >>> smaller(vectors, 8, "binary").numpy()  # 10110111 less 128
    array([[55]], dtype=int8)

    Args:
        vectors: float32 [batch, width].
        truncate_dim: how many numbers are kept; None keeps all. They are not normalized again.
        form: "float32"; "int8", where -128 is the lowest number of the ranges and 127 the highest;
            or "binary", a bit for each number, 1 if that is positive, in bytes less 128.
        ranges: the ranges of "int8", each [width].

    Returns:
        float32 [batch, truncate_dim], int8 [batch, truncate_dim] or int8 [batch, truncate_dim / 8],
        rounded up.

    Raises:
        UserError: "int8" has no ranges.
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
    # Products and sums of whole numbers, which LiteRT has too.
    values = tf.reshape(bits, [-1, -(-width // 8), 8]) * (2.0 ** np.arange(7.0, -1.0, -1.0))
    return tf.cast(tf.reduce_sum(values, axis=2) - 128.0, tf.int8)


def ranges_of(vectors: np.ndarray) -> list[list[float]]:
    """The ranges of vectors, float32 [batch, width].

    >>> ranges_of(np.array([[0.5, -1.0], [0.25, 2.0]], np.float32))
    [[0.25, -1.0], [0.5, 2.0]]

    Raises:
        UserError: there are fewer than two vectors, or numbers that are not finite.
    """
    if len(vectors) < 2 or not np.isfinite(vectors).all():
        raise UserError("the ranges of int8 are found on two texts or more with finite vectors")
    return [vectors.min(axis=0).tolist(), vectors.max(axis=0).tolist()]


def check(width: int, truncate_dim: int | None = None, ranges: Ranges | None = None) -> None:
    """Checks what vectors of `width` numbers are to become.

    >>> check(2, truncate_dim=1, ranges=[[0.0, -1.0], [0.5, 1.0]])

    Raises:
        UserError: there are not so many numbers, or the ranges are none.
    """
    if truncate_dim is not None and not 1 <= truncate_dim <= width:
        raise UserError(
            f"truncate_dim is {truncate_dim}, but vectors of this model have 1 to {width} numbers"
        )
    if ranges is not None and not _are_ranges(ranges, width):
        raise UserError(
            f"ranges must be the lowest and the highest of each of {width} numbers, two lists"
        )


def _are_ranges(given: Any, width: int) -> bool:
    """Whether a value, maybe of a file of unknown origin, is the ranges of so many numbers."""
    try:
        low, high = (np.array([*each], np.float64) for each in given)
    except (TypeError, ValueError):
        return False
    is_finite = np.isfinite(low).all() and np.isfinite(high).all()
    return bool(low.shape == high.shape == (width,) and is_finite and (low <= high).all())


def asked_for(
    vectors: np.ndarray,
    settings: Mapping[str, Any],
    truncate_dim: int | None = None,
    form: str | None = None,
) -> np.ndarray:
    """The vectors that a model gave, as one call of `predict` is to return them.

    >>> asked_for(np.array([[0.5, -1.0]], np.float32), {}, truncate_dim=1)
    array([[0.5]], dtype=float32)

    Args:
        vectors: [batch, width].
        settings: those of the model.
        truncate_dim, form: as for `smaller`; None is what the model gives.

    Raises:
        UserError: the model gives others already, or see `check` and `smaller`.
    """
    given = settings.get("vectors", FLOAT32)
    if vectors.dtype == np.int8:
        if form not in (None, given) or truncate_dim != settings.get("truncate_dim"):
            raise UserError(
                f"this export gives {given} vectors, which cannot be changed any more; ask the "
                "model that it was exported from"
            )
        return vectors
    if truncate_dim in (None, vectors.shape[1]) and (form or given) == FLOAT32:
        return vectors
    # The ranges are of all numbers, of which the model may give the first.
    ranges = settings.get("ranges")
    ranges = ranges and [each[: vectors.shape[1]] for each in ranges]
    check(vectors.shape[1], truncate_dim)
    return smaller(vectors, truncate_dim, form or given, ranges).numpy()
