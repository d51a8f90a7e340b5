"""The learning rate of BERT: up in a straight line, then down to zero in another."""

from typing import Any

import keras
import tensorflow as tf

from bert_tf.config.arguments import checked
from bert_tf.errors import UserError


@keras.saving.register_keras_serializable("bert_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """peak * step / warmup_steps during warm-up, then peak * (1 - step / total_steps).

    Both lines start at step 0, so the rate falls by peak * warmup_steps / total_steps where they
    meet, as in google-research/bert `optimization.py`. With `decay_after_warmup` the second line
    starts at the end of the first, as in transformers' `get_linear_schedule_with_warmup`, and the
    rate is peak * (total_steps - step) / (total_steps - warmup_steps). After `total_steps` it is 0.

    Args:
        peak: the highest learning rate.
        total_steps: number of updates in the whole training.
        warmup_steps: number of updates of warm-up; may be 0.
        decay_after_warmup: whether the decay begins where the warm-up ends.

    Raises:
        UserError: `total_steps` is below 1, or `warmup_steps` is not between 0 and `total_steps`.

    >>> rate = WarmupLinearDecay(1e-4, total_steps=100, warmup_steps=10)
    >>> [round(float(rate(step)), 7) for step in (0, 5, 10, 55, 100)]
    [0.0, 5e-05, 9e-05, 4.5e-05, 0.0]
    """

    @checked
    def __init__(
        self, peak: float, total_steps: int, warmup_steps: int = 0, decay_after_warmup: bool = False
    ):
        if warmup_steps > total_steps:
            raise UserError(
                f"warmup_steps must be between 0 and total_steps ({total_steps}), not "
                f"{warmup_steps}"
            )
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.decay_after_warmup = decay_after_warmup

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Step number, an integer scalar -> float64 scalar, which optimizers cast as they need."""
        step = tf.cast(step, tf.float64)
        begin = self.warmup_steps if self.decay_after_warmup else 0
        decay_steps = max(self.total_steps - begin, 1)
        rate = self.peak * (1.0 - tf.minimum((step - begin) / decay_steps, 1.0))
        if self.warmup_steps:
            warming = self.peak * step / self.warmup_steps
            rate = tf.where(step < self.warmup_steps, warming, rate)
        return rate

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
            "decay_after_warmup": self.decay_after_warmup,
        }
