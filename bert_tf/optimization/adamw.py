"""The Adam that BERT was published with: no bias correction, decoupled weight decay.

Source: `AdamWeightDecayOptimizer` and `create_optimizer` in google-research/bert
`optimization.py`.
"""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from bert_tf.optimization.base import NO_DECAY, BertOptimizer


@keras.saving.register_keras_serializable("bert_tf")
class AdamW(BertOptimizer):
    """m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w -= lr (m / (sqrt(v) + eps) + decay w).

    Args: see `BertOptimizer`.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 5e-5,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        clip_norm: float | None = 1.0,
        exclude_from_weight_decay: Sequence[str] = NO_DECAY,
        name: str = "adamw",
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
        """lr (m / (sqrt(v) + eps) + decay w)."""
        step = momentum / (tf.sqrt(velocity) + self.epsilon)
        if decay:
            step += decay * variable
        return rate * step
