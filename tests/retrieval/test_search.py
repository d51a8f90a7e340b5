"""Exact search finds what sorting all scores finds."""

import numpy as np
import pytest

from bert_tf.errors import UserError
from bert_tf.retrieval.search import exact_search

SOURCE = np.random.default_rng(0)
# Small whole numbers: their products are exact, and many are equal.
QUERIES = SOURCE.integers(-2, 3, (7, 3)).astype(np.float32)
PASSAGES = SOURCE.integers(-2, 3, (50, 3)).astype(np.float32)


def by_sorting(queries, passages, k):
    scores = queries @ passages.T
    numbers = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return numbers, np.take_along_axis(scores, numbers, axis=1)


@pytest.mark.parametrize("block", [1, 4, 7, 50, 1000])
@pytest.mark.parametrize("k", [1, 5, 50, 60])
def test_search_is_a_stable_sort(block, k):
    numbers, scores = exact_search(QUERIES, PASSAGES, k, block)
    expected, expected_scores = by_sorting(QUERIES, PASSAGES, k)
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_array_equal(scores, expected_scores)
    assert (numbers.dtype, scores.dtype) == (np.int64, np.float32)
    assert numbers.shape == (7, min(k, 50))


def test_many_queries():
    queries = SOURCE.integers(-9, 9, (1100, 3)).astype(np.float32)
    np.testing.assert_array_equal(
        exact_search(queries, PASSAGES, 4)[0], by_sorting(queries, PASSAGES, 4)[0]
    )


def test_real_vectors():
    queries, passages = (SOURCE.normal(size=(n, 16)).astype(np.float32) for n in (9, 300))
    numbers, scores = exact_search(queries, passages, 10, block=64)
    expected, expected_scores = by_sorting(queries, passages, 10)
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-5)


def test_passages_may_be_blocks_or_lie_on_the_disk(tmp_path):
    expected = by_sorting(QUERIES, PASSAGES, 5)[0]
    blocks = (PASSAGES[start:stop] for start, stop in ((0, 3), (3, 3), (3, 40), (40, 50)))
    np.testing.assert_array_equal(exact_search(QUERIES, blocks, 5, block=6)[0], expected)
    np.save(tmp_path / "vectors.npy", PASSAGES.astype(np.float16))
    on_disk = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    np.testing.assert_array_equal(exact_search(QUERIES, on_disk, 5, block=6)[0], expected)


def test_no_more_than_a_block_is_read_at_a_time(tmp_path):
    alive = []

    def blocks():
        for start in range(0, 50, 10):
            alive.append(start)
            yield PASSAGES[start : start + 10]

    search = exact_search(QUERIES, blocks(), 5)
    assert alive == [0, 10, 20, 30, 40]
    np.testing.assert_array_equal(search[0], by_sorting(QUERIES, PASSAGES, 5)[0])


def test_cosine():
    passages = np.array([[10, 0], [0.5, 0.5], [0, 0], [0, 2]])
    numbers, scores = exact_search([[3, 3]], passages, 4, cosine=True)
    assert numbers.tolist() == [[1, 0, 3, 2]]
    np.testing.assert_allclose(scores, [[1, 0.5**0.5, 0.5**0.5, 0]], rtol=1e-6)


def test_no_queries():
    numbers, scores = exact_search(np.zeros((0, 3)), PASSAGES, 60)
    assert numbers.shape == scores.shape == (0, 50)


@pytest.mark.parametrize(
    ("queries", "passages", "options", "message"),
    [
        (QUERIES, PASSAGES, {"k": 0}, "k is 0 and block is 16384; both must be at least 1"),
        (QUERIES, PASSAGES, {"k": 1, "block": 0}, "both must be at least 1"),
        (QUERIES, PASSAGES[:0], {"k": 1}, "there are no passages to search"),
        (QUERIES, iter([]), {"k": 1}, "there are no passages to search"),
        (QUERIES[0], PASSAGES, {"k": 1}, r"shape \[3\]; it must be \[queries, width\]"),
        (QUERIES, PASSAGES[:, :2], {"k": 1}, r"shape \[50, 2\]; it must be \[passages, 3\]"),
        ([[np.inf, 0, 0]], PASSAGES, {"k": 1}, "vector 0 of the queries holds NaN or infinity"),
    ],
)
def test_mistakes(queries, passages, options, message):
    with pytest.raises(UserError, match=message):
        exact_search(queries, passages, **options)


def test_a_broken_passage_is_named_by_its_number():
    broken = PASSAGES.copy()
    broken[17, 1] = np.nan
    with pytest.raises(UserError, match="vector 17 of the passages holds NaN"):
        exact_search(QUERIES, broken, 3, block=10)
