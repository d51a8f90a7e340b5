"""The learning rate of BERT: up in a straight line, then down to zero in another."""

from typing import Any

import keras
import tensorflow as tf

from bert_tf.errors import UserError


@keras.saving.register_keras_serializable("bert_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """peak * step / warmup_steps during warm-up, then peak * (1 - step / total_steps).

    Both lines start at step 0, so the rate falls by peak * warmup_steps / total_steps where they
    meet, as in google-research/bert `optimization.py`. After `total_steps` the rate is 0.

    Args:
        peak: the highest learning rate.
        total_steps: number of updates in the whole training.
        warmup_steps: number of updates of warm-up; may be 0.

    Raises:
        UserError: no updates at all, or more of warm-up than there are.
    """

    def __init__(self, peak: float, total_steps: int, warmup_steps: int = 0):
        if total_steps < 1:
            raise UserError(f"total_steps must be at least 1, not {total_steps}")
        if not 0 <= warmup_steps <= total_steps:
            raise UserError(
                f"warmup_steps must be from 0 to total_steps, which is {total_steps}, not "
                f"{warmup_steps}"
            )
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Step number, an integer scalar -> float64 scalar, which optimizers cast as they need."""
        step = tf.cast(step, tf.float64)
        rate = self.peak * (1.0 - tf.minimum(step / self.total_steps, 1.0))
        if self.warmup_steps:
            warming = self.peak * step / self.warmup_steps
            rate = tf.where(step < self.warmup_steps, warming, rate)
        return rate

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
        }
