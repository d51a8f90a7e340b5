"""Exact search: the passages whose vectors are nearest to those of queries."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.errors import UserError

_QUERIES = 512  # queries that are compared with a block of passages at a time


def exact_search(
    queries: Any,
    passages: np.ndarray | Iterable[np.ndarray],
    k: int,
    block: int = 16_384,
    cosine: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The k passages of the highest scores for each query, best first.

    >>> queries = np.array([[1.0, 0.0], [0.5, 1.0]])
    >>> passages = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    >>> numbers, scores = exact_search(queries, passages, k=2)
    >>> numbers.tolist()
    [[1, 2], [0, 2]]
    >>> scores.tolist()
    [[1.0, 0.5], [1.0, 0.75]]

    Every passage is compared with every query, block by block. Memory holds one block and
    the k best so far, whatever the number of passages.

    Args:
        queries: float [queries, width].
        passages: float [passages, width], also a `np.memmap`, or an iterable of such blocks that
            is read once. They are numbered from 0 in their order.
        k: how many passages to find.
        block: most passages that are compared at a time.
        cosine: whether a score is the cosine of the angle between two vectors. Otherwise it is
            their dot product, which is the same for vectors of length 1. A vector of zeros has
            the cosine 0 with every other.

    Returns:
        Numbers of passages, int64 [queries, k], and their scores, float32 [queries, k]. Of equal
        scores the lower number comes first; equal vectors of one block have equal scores. There are
        fewer columns where there are fewer than k passages.

    Raises:
        UserError: there are no passages, k or block is less than 1, the widths differ, or a vector
            holds NaN or infinity.
    """
    if k < 1 or block < 1:
        raise UserError(f"k is {k} and block is {block}; both must be at least 1")
    asked = _vectors(queries, "queries", None, 0, cosine)
    chunks = [tf.constant(asked[i : i + _QUERIES]) for i in range(0, len(asked), _QUERIES)]
    best: list[tuple[tf.Tensor, tf.Tensor]] = []
    start = 0
    for part in _parts(passages, block):
        vectors = _vectors(part, "passages", asked.shape[1], start, cosine)
        rows, first = tf.constant(vectors), _first_equal(vectors)
        found = [_best_of(chunk, rows, first, k, start) for chunk in chunks]
        best = [_merged(*two, k) for two in zip(best, found, strict=True)] if best else found
        start += len(part)
    if not start:
        raise UserError("there are no passages to search; give at least one")
    if not best:
        width = min(k, start)
        return np.zeros((0, width), np.int64), np.zeros((0, width), np.float32)
    scores, numbers = (tf.concat(parts, axis=0) for parts in zip(*best, strict=True))
    return numbers.numpy(), scores.numpy()


def _parts(passages: np.ndarray | Iterable[np.ndarray], block: int) -> Iterator[np.ndarray]:
    """Consecutive passages, at most `block` at a time."""
    for piece in [passages] if isinstance(passages, np.ndarray) else passages:
        for start in range(0, len(piece), block):
            yield piece[start : start + block]


def _vectors(given: Any, name: str, width: int | None, start: int, cosine: bool) -> np.ndarray:
    """Checked vectors, float32 [rows, width], of length 1 where scores are cosines."""
    vectors = np.asarray(given, np.float32)
    if vectors.ndim != 2 or width not in (None, vectors.shape[1]):
        columns = "width" if width is None else width
        raise UserError(
            f"{name} have the shape {list(vectors.shape)}; it must be [{name}, {columns}]"
        )
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        row = start + int(np.argmin(finite))
        raise UserError(f"vector {row} of the {name} holds NaN or infinity; embed its text again")
    return unit_vectors(vectors) if cosine else vectors


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Vectors, [rows, width], scaled to length 1; zeros stay zeros."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _first_equal(vectors: np.ndarray) -> np.ndarray | None:
    """int64 [rows]: for each vector the first that equals it; None where all are different."""
    if not vectors.size:
        return None
    # The first two numbers of a vector, compared as one integer, tell most vectors apart.
    starts = np.zeros([len(vectors), 2], np.float32)
    starts[:, : vectors.shape[1]] = vectors[:, :2]
    _, place, counts = np.unique(
        starts.view(np.int64)[:, 0], return_inverse=True, return_counts=True
    )
    (alike,) = np.nonzero(counts[place] > 1)
    if not len(alike):
        return None
    whole = np.ascontiguousarray(vectors[alike]).view(f"V{vectors[0].nbytes}")[:, 0]
    _, first, place = np.unique(whole, return_index=True, return_inverse=True)
    numbers = np.arange(len(vectors))
    numbers[alike] = alike[first[place]]
    return numbers


def _best_of(
    queries: tf.Tensor, passages: tf.Tensor, first: np.ndarray | None, k: int, start: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """The best scores in a block of passages, of which the first has the number `start`."""
    scores = tf.matmul(queries, passages, transpose_b=True)
    # A product computes its last columns differently: equal passages get the score of the first.
    scores = scores if first is None else tf.gather(scores, first, axis=1)
    # Of equal scores `top_k` takes the lower index first.
    best, places = tf.math.top_k(scores, min(k, len(passages)))
    return best, tf.cast(places, tf.int64) + start


def _merged(
    before: tuple[tf.Tensor, tf.Tensor], after: tuple[tf.Tensor, tf.Tensor], k: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """The best of two results; the first's numbers are all lower than the second's."""
    scores, numbers = (tf.concat(both, axis=1) for both in zip(before, after, strict=True))
    best, places = tf.math.top_k(scores, min(k, scores.shape[1]))
    return best, tf.gather(numbers, places, batch_dims=1)
