"""BERT's optimizers and learning-rate schedule, and those of other packages."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import keras

from bert_tf.config.imported import Imported
from bert_tf.config.train import TrainConfig
from bert_tf.errors import UserError
from bert_tf.optimization.optimizers import (
    LAMB,
    AdamW,
    BertOptimizer,
    ClippedOptimizer,
    OtherOptimizer,
)
from bert_tf.optimization.schedule import WarmupLinearDecay

__all__ = ["LAMB", "AdamW", "WarmupLinearDecay", "make_optimizer", "values_of"]

# What Keras's optimizers may do that a run does in another way, or not at all.
_NOT_IN_RUNS = "clipnorm global_clipnorm clipvalue gradient_accumulation_steps use_ema".split()


def values_of(settings: TrainConfig, total_steps: int) -> dict[str, Any]:
    """What `$name` stands for in the arguments of `Imported`."""
    return {
        "learning_rate": settings.learning_rate,
        "total_steps": total_steps,
        "warmup_steps": round(total_steps * settings.warmup_fraction),
    }


def make_optimizer(
    settings: TrainConfig, total_steps: int, rate_factors: Mapping[str, float] | None = None
) -> ClippedOptimizer:
    """The optimizer of a run of `total_steps` updates, with BERT's schedule or that of the run."""
    values = values_of(settings, total_steps)
    schedule = WarmupLinearDecay(
        settings.learning_rate, total_steps, values["warmup_steps"], settings.decay_after_warmup
    )
    for each in settings.named["schedule"]:
        schedule = each.make(keras.optimizers.schedules.LearningRateSchedule, values)
    for each in settings.named["optimizer"]:
        optimizer = each.make(keras.optimizers.Optimizer, values, learning_rate=schedule)
        return _clipped(each, optimizer, settings.gradient_clip)
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


def _clipped(named: Imported, optimizer: Any, clip_norm: float | None) -> ClippedOptimizer:
    """An optimizer of another package that clips as ours do."""
    for option in _NOT_IN_RUNS:
        if getattr(optimizer, option, None):
            raise UserError(
                f"{named.place}: {named.name} has {option}, which runs do not support; remove it, "
                "or see train.gradient_clip and train.accumulation_steps"
            )
    kind = type(optimizer)
    # Files name the class without the clipping, so that Keras finds it.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    optimizer.__class__ = type(kind.__name__, (OtherOptimizer, kind), names)
    optimizer.clip_norm = clip_norm
    return optimizer
