"""Scores of padding: tokens and choices that are not there."""

import tensorflow as tf

# Far below any logit, yet finite, so that a row of nothing else has a softmax.
PADDING_SCORE = -1e9


def hide_padding(logits: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """float32 `logits` where the integer `mask` of their shape is not 0, else PADDING_SCORE."""
    return tf.where(tf.not_equal(mask, 0), logits, PADDING_SCORE)
