"""LAMB, for batches of thousands of sequences (You et al. 2020, "Large Batch Optimization for
Deep Learning: Training BERT in 76 minutes", algorithm 2).
"""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from bert_tf.optimization.base import NO_DECAY, BertOptimizer


@keras.saving.register_keras_serializable("bert_tf")
class LAMB(BertOptimizer):
    """Adam's step with bias correction and decay, rescaled to the norm of each weight.

    r = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps); u = r + decay w; w -= lr |w| / |u| u. A
    weight that does not decay, or one of norm zero, is not rescaled. Query, key and value of a
    layer are one weight here and share one ratio.

    Args: see `BertOptimizer`.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 1e-3,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        clip_norm: float | None = 1.0,
        exclude_from_weight_decay: Sequence[str] = NO_DECAY,
        name: str = "lamb",
        **kwargs: Any,
    ):
        super().__init__(
            learning_rate,
            weight_decay,
            beta_1,
            beta_2,
            epsilon,
            clip_norm,
            exclude_from_weight_decay,
            name,
            **kwargs,
        )

    def update(
        self,
        variable: tf.Variable,
        momentum: tf.Tensor,
        velocity: tf.Tensor,
        decay: float,
        rate: tf.Tensor,
    ) -> tf.Tensor:
        """lr |w| / |u| u."""
        count = tf.cast(self.iterations + 1, variable.dtype)
        momentum = momentum / (1.0 - tf.pow(self.beta_1, count))
        velocity = velocity / (1.0 - tf.pow(self.beta_2, count))
        step = momentum / (tf.sqrt(velocity) + self.epsilon)
        if not decay:
            return rate * step
        step += decay * variable
        ratio = tf.math.divide_no_nan(tf.norm(variable), tf.norm(step))
        return rate * tf.where(ratio > 0.0, ratio, 1.0) * step
