"""bert_tf's export in a process that only answers, as `tf.saved_model.load` loads it."""

from collections.abc import Callable
from typing import Any

import benchmarks.lean  # noqa: F401  before TensorFlow

# isort: split
import tensorflow as tf

from benchmarks.speed.exported import exported, job
from benchmarks.speed.turns import Job, serve
from benchmarks.threads import set_threads


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names."""
    set_threads(settings)
    with exported(settings) as folder:
        loaded = tf.saved_model.load(folder)
    answer = loaded.signatures["serving_default"]

    def make(given: dict[str, Any]) -> Callable[[], dict[str, Any]]:
        tensors = {name: tf.constant(value) for name, value in given.items()}
        return lambda: answer(**tensors)

    return job(settings, make)


if __name__ == "__main__":
    serve(prepare)
