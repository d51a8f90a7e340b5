"""LAMB, for batches of thousands of sequences (You et al. 2020, "Large Batch Optimization for
Deep Learning: Training BERT in 76 minutes", algorithm 2).
"""

import keras
import tensorflow as tf

from bert_tf.optimization.base import BertOptimizer


@keras.saving.register_keras_serializable("bert_tf")
class LAMB(BertOptimizer):
    """Adam's step with bias correction and decay, rescaled to the norm of each weight.

    `r = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)`, `u = r + decay w`, `w -= lr |w| / |u| u`.
    A weight that is excluded from the decay, or one of norm zero, is not rescaled; with a decay
    rate of 0 the others still are. Query, key and value of a layer are one weight here and share
    one ratio.

    Args: see `BertOptimizer`.
    """

    def step(self, w: tf.Variable, m: tf.Tensor, v: tf.Tensor, decay: float | None) -> tf.Tensor:
        """|w| / |u| u; r if the weight does not decay."""
        first, second = self._biases(w.dtype)
        step = m / first / (tf.sqrt(v / second) + self.epsilon)
        if decay is None:
            return step
        step += decay * w
        ratio = tf.math.divide_no_nan(tf.norm(w), tf.norm(step))
        return tf.where(ratio > 0.0, ratio, 1.0) * step
