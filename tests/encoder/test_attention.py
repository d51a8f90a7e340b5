"""Attention is softmax(Q K^T / sqrt(d)) V over the keys that may be seen, worked out one by one."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder.ablations import one_way_bias
from bert_tf.encoder.attention import SelfAttention, padding_bias
from bert_tf.encoder.layout import PaddedLayout, UnpaddedLayout

HIDDEN, HEADS = 6, 2
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 1], [0, 0, 0, 0, 0]])
MAY_SEE = {
    "bidirectional": lambda query, key: True,
    "left_to_right": lambda query, key: key <= query,
    "right_to_left": lambda query, key: key >= query,
}


def attention_bias(key_mask: tf.Tensor, direction: str) -> tf.Tensor:
    both = direction == "bidirectional"
    return padding_bias(key_mask) if both else one_way_bias(key_mask, direction)


def layer() -> SelfAttention:
    """Attention with weights large enough that its probabilities are far from even."""
    attention = SelfAttention(HEADS, 0.0, 0.02)
    attention.build((None, HIDDEN))
    random = np.random.RandomState(1)
    for weight in attention.weights:
        weight.assign(random.normal(size=weight.shape))
    return attention


def one_by_one(
    rows: np.ndarray, attention: SelfAttention, direction: str
) -> tuple[np.ndarray, np.ndarray]:
    """Every query of every head by itself, in float64; 0 at padding.

    Returns:
        The outputs [batch, seq_len, hidden] and the probabilities [batch, heads, query, key].
    """
    kernel, bias, out_kernel, out_bias = (np.float64(weight) for weight in attention.get_weights())
    size = HIDDEN // HEADS
    mixed, outputs = np.zeros(rows.shape), np.zeros(rows.shape)
    maps = np.zeros([len(rows), HEADS, rows.shape[1], rows.shape[1]])
    query, key, value = np.split(rows @ kernel + bias, 3, axis=-1)
    for row, place in zip(*np.nonzero(MASK), strict=True):
        seen = [k for k in np.flatnonzero(MASK[row]) if MAY_SEE[direction](place, k)]
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            scores = key[row, seen, part] @ query[row, place, part] / np.sqrt(size)
            weights = np.exp(scores - scores.max())
            maps[row, head, place, seen] = weights / weights.sum()
            mixed[row, place, part] = maps[row, head, place, seen] @ value[row, seen, part]
        outputs[row, place] = mixed[row, place] @ out_kernel + out_bias
    return outputs, maps


@pytest.mark.parametrize("layout", [PaddedLayout, UnpaddedLayout])
@pytest.mark.parametrize("direction", MAY_SEE)
def test_each_token_mixes_those_it_may_see(layout, direction):
    attention = layer()
    rows = np.random.RandomState(0).normal(size=(*MASK.shape, HIDDEN))
    placed = layout(tf.constant(MASK))
    bias = attention_bias(placed.key_mask, direction)
    tokens = placed.flatten(tf.constant(rows, tf.float32))
    tokens, intermediates = attention(tokens, layout=placed, bias=bias)
    expected, maps = one_by_one(rows, attention, direction)
    tolerance = 1e-6 * np.abs(expected).max()
    np.testing.assert_allclose(placed.restore(tokens), expected, rtol=0, atol=tolerance)
    found = intermediates["attention_probabilities"].numpy()
    assert found.shape == (4, HEADS, 5, 5)
    is_query = np.broadcast_to(MASK.astype(bool)[:, None, :, None], maps.shape)
    np.testing.assert_allclose(found[is_query], maps[is_query], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found[is_query & (maps == 0)], 0)


@pytest.mark.bfloat16
def test_in_bfloat16_answers_are_as_exact_without_float32_as_training_is_with_it():
    attention = SelfAttention(4, 0.0, 0.3, dtype="mixed_bfloat16")
    attention.build((None, 64))
    rows = np.random.RandomState(0).normal(size=(3, 50, 64))
    placed = PaddedLayout(tf.ones([3, 50], tf.int32))
    bias = attention_bias(placed.key_mask, "bidirectional")
    tokens = placed.flatten(tf.constant(rows, tf.bfloat16))
    exact = SelfAttention(4, 0.0, 0.3)
    exact.build((None, 64))
    exact.set_weights(attention.get_weights())
    expected, _ = exact(tf.cast(tokens, tf.float32), layout=placed, bias=bias)

    def error(training: bool) -> float:
        answer, parts = attention(tokens, layout=placed, bias=bias, training=training)
        assert parts["attention_probabilities"].dtype == tf.bfloat16
        return float(tf.norm(tf.cast(answer, tf.float32) - expected) / tf.norm(expected))

    assert 0 < error(training=False) < 1.1 * error(training=True) < 0.02


@pytest.mark.parametrize("direction", MAY_SEE)
def test_what_may_not_be_seen_has_no_part_in_the_gradient(direction):
    attention = layer()
    placed = PaddedLayout(tf.constant(MASK[:1]))
    bias = attention_bias(placed.key_mask, direction)
    rows = tf.constant(np.random.RandomState(0).normal(size=(5, HIDDEN)), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        third = attention(rows, layout=placed, bias=bias)[0][2]
    reached = np.any(tape.gradient(third, rows).numpy() != 0, axis=-1)
    assert list(reached) == [MAY_SEE[direction](2, key) for key in range(5)]


def test_a_bias_that_is_learned_has_a_gradient():
    attention = layer()
    placed = PaddedLayout(tf.ones([1, 5], tf.int32))
    rows = tf.constant(np.random.RandomState(0).normal(size=(5, HIDDEN)), tf.float32)
    bias = tf.constant(np.random.RandomState(1).normal(size=(1, 1, 5, 5)), tf.float32)
    found = []
    for training in (True, False):
        with tf.GradientTape() as tape:
            tape.watch(bias)
            tokens, _ = attention(rows, layout=placed, bias=bias, training=training)
            loss = tf.reduce_sum(tokens**3)
        found.append(tape.gradient(loss, bias))
    assert np.abs(found[0]).max() > 1e-3
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)
