"""Steps of Keras's `fit`, for contestants that are compiled Keras models."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.speed.turns import Job


def training(model: Any, batches: Iterator[tuple]) -> Job:
    """One update a step, from batches that `endless` makes."""
    # As our `fit` does: variables that are made while Keras traces the step make it trace twice.
    model.optimizer.build(model.trainable_variables)
    model.make_train_function()
    first = next(batches)
    dataset = tf.data.Dataset.from_generator(
        lambda: itertools.chain([first], batches), output_signature=_signature(first)
    )
    iterator = iter(dataset.prefetch(2))

    def step() -> None:
        tf.nest.map_structure(np.asarray, model.train_function(iterator))

    return Job(step)


def _signature(batch: tuple) -> Any:
    return tf.nest.map_structure(
        lambda each: tf.TensorSpec([each.shape[0], *[None] * (each.ndim - 1)], each.dtype), batch
    )


def endless(
    batch: Callable[[int], dict[str, np.ndarray]], targets: tuple[str, ...]
) -> Iterator[tuple]:
    """Pairs of inputs and targets of `batch(0)`, `batch(1)`, …; a single target is given alone."""
    seed = 0
    while True:
        values = batch(seed)
        y = {name: values.pop(name) for name in targets}
        yield values, y if len(y) > 1 else y[targets[0]]
        seed += 1
