"""Tokens laid flat come back to their places, and gradients with them."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder.layout import PaddedLayout, UnpaddedLayout

LAYOUTS = [PaddedLayout, UnpaddedLayout]
MASKS = {
    "full": [[1, 1, 1], [1, 1, 1]],
    "padded": [[1, 1, 1, 0], [1, 0, 0, 0]],
    "holes": [[0, 1, 0, 1, 0], [1, 0, 1, 0, 0]],
    "an empty row": [[1, 1, 0], [0, 0, 0]],
    "only empty rows": [[0, 0, 0], [0, 0, 0]],
    "no rows": np.zeros((0, 3)),
    "no columns": np.zeros((2, 0)),
}


@pytest.fixture(params=MASKS.values(), ids=MASKS.keys())
def mask(request) -> np.ndarray:
    return np.array(request.param, np.int32)


def numbered(mask: np.ndarray) -> np.ndarray:
    """[batch, seq_len, 2] with different values everywhere."""
    return np.arange(1, mask.size * 2 + 1, dtype=np.float32).reshape(*mask.shape, 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_flatten_then_restore_keeps_tokens_and_zeroes_padding(layout, mask):
    rows = numbered(mask)
    placed = layout(tf.constant(mask))
    np.testing.assert_array_equal(placed.restore(placed.flatten(rows)), rows * mask[..., None])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_select_finds_tokens_by_their_place(layout, mask):
    rows = numbered(mask)
    batch, seq_len = mask.shape
    if seq_len == 0:
        pytest.skip("there is no place to select")
    placed = layout(tf.constant(mask))
    places = np.tile(np.arange(seq_len - 1, -1, -1, dtype=np.int32), (batch, 1))
    selected = placed.select(placed.flatten(rows), tf.constant(places))
    expected = (rows * mask[..., None])[:, ::-1].reshape(-1, 2)
    np.testing.assert_array_equal(selected, expected)


def lengths_to_mask(lengths: np.ndarray) -> np.ndarray:
    return (np.arange(lengths.max()) < lengths[:, None]).astype(np.int32)


def test_batches_of_any_lengths_have_few_shapes():
    random = np.random.default_rng(0)
    tokens, row_lens = set(), set()
    for _ in range(200):
        lengths = random.integers(20, 129, 8)
        mask = lengths_to_mask(lengths)
        layout = UnpaddedLayout(tf.constant(mask))
        count = len(layout.flatten(tf.constant(mask)))
        row_len = layout.key_mask.shape[1]
        assert lengths.sum() <= count <= lengths.sum() * 17 / 16
        assert lengths.max() <= row_len <= lengths.max() * 17 / 16
        tokens.add(count)
        row_lens.add(row_len)
    # There are three powers of two from 8 * 20 to 8 * 128.
    assert len(tokens) <= 3 * 16
    assert all(row_len % 4 == 0 for row_len in row_lens if row_len > 64)


def test_a_full_batch_has_no_more_tokens_than_places():
    layout = UnpaddedLayout(tf.ones([3, 16], tf.int32))
    assert len(layout.flatten(tf.zeros([3, 16]))) == 48
    # 3 * 33 and 33 are not round numbers, so tokens and rows are padded.
    layout = UnpaddedLayout(tf.ones([3, 33], tf.int32))
    assert layout.key_mask.shape == (3, 34)
    assert len(layout.flatten(tf.zeros([3, 33]))) == 100


def test_few_tokens_are_kept_without_padding():
    mask = tf.constant([[1, 1, 0, 0], [1, 0, 0, 0]])
    layout = UnpaddedLayout(mask)
    tokens = layout.flatten(tf.constant([[5, 6, 0, 0], [7, 0, 0, 0]]))
    np.testing.assert_array_equal(tokens, [5, 6, 7])
    assert layout.key_mask.shape == (2, 2)  # rows as long as the longest


def test_gradients_of_the_two_gathers_are_those_of_tensorflow():
    mask = tf.constant([[1, 0, 1, 0], [1, 1, 0, 0]])
    layout = UnpaddedLayout(mask)
    tokens = tf.random.stateless_normal([4, 3], [1, 2])
    weights = tf.random.stateless_normal([2, 3, 3], [3, 4])
    real = tf.cast(mask[:, :3], tf.float32)[..., None]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(tokens)
        ours = tf.reduce_sum(layout.to_rows(tokens) * weights * real)
        places = tf.constant([[0, 0], [0, 2], [1, 0], [1, 1]])
        plain = tf.reduce_sum(tf.scatter_nd(places, tokens, [2, 3, 3]) * weights)
        rows = layout.to_rows(tokens)
    np.testing.assert_allclose(tape.gradient(ours, tokens), tape.gradient(plain, tokens))
    with tf.GradientTape() as tape:
        tape.watch(rows)
        collected = tf.reduce_sum(tf.square(layout.flatten(rows)))
    gradient = tape.gradient(collected, rows).numpy()
    np.testing.assert_allclose(gradient, 2 * rows.numpy() * real.numpy())
