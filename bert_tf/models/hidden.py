"""Scores of things that are not there."""

import tensorflow as tf

# Far below any logit, yet finite, so that a row of nothing else has a softmax.
HIDDEN = -1e9


def hide_padding(logits: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """float32 `logits` where the integer `mask` of the same shape is not 0, elsewhere HIDDEN."""
    return tf.where(tf.not_equal(mask, 0), logits, HIDDEN)
