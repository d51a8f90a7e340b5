"""BERT's optimizers and learning-rate schedule."""

import functools
from collections.abc import Callable, Mapping

from bert_tf.config.train import TrainConfig
from bert_tf.optimization.adamw import LAMB, AdamW
from bert_tf.optimization.base import BertOptimizer
from bert_tf.optimization.schedule import WarmupLinearDecay

__all__ = ["LAMB", "AdamW", "WarmupLinearDecay", "make_optimizer"]


def make_optimizer(
    settings: TrainConfig, total_steps: int, rate_factors: Mapping[str, float] | None = None
) -> BertOptimizer:
    """The optimizer of a run, with BERT's schedule over `total_steps` updates."""
    warmup = round(total_steps * settings.warmup_fraction)
    schedule = WarmupLinearDecay(
        settings.learning_rate, total_steps, warmup, settings.decay_after_warmup
    )
    make: Callable[..., BertOptimizer] = LAMB
    if settings.optimizer == "adamw":
        make = functools.partial(AdamW, bias_correction=settings.bias_correction)
    return make(
        schedule,
        epsilon=settings.adam_epsilon,
        weight_decay=settings.weight_decay,
        clip_norm=settings.gradient_clip,
        rate_factors=rate_factors,
        skip_nonfinite=settings.skip_nonfinite,
    )
