"""bert_tf's export in a process that only answers, as `tf.saved_model.load` loads it."""

from typing import Any

import benchmarks.lean  # noqa: F401  before TensorFlow

# isort: split
import tensorflow as tf

from benchmarks.speed import inputs
from benchmarks.speed.exported import exported
from benchmarks.speed.turns import Job, serve
from benchmarks.threads import set_threads


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names."""
    set_threads(settings)
    with exported(settings) as folder:
        loaded = tf.saved_model.load(folder)
    return {"encode": _encode, "classify": _classify}[settings["work"]](loaded, settings)


def _encode(loaded: Any, settings: dict[str, Any]) -> Job:
    compute = loaded.signatures["serving_default"]
    tensors, last = {}, []

    def resize(rows: int, length: int) -> None:
        made = inputs.full_batch(rows, length, 30522)
        tensors.update({name: tf.constant(value) for name, value in made.items()})

    def step() -> None:
        last[:] = [compute(**tensors)["last_layer"].numpy()]

    resize(settings["batch"], settings["length"])
    return Job(step, lambda: last[0], resize)


def _classify(loaded: Any, settings: dict[str, Any]) -> Job:
    answer = loaded.signatures["serving_default"]
    texts = tf.constant(inputs.texts(settings["vocabulary_file"], settings["batch"]))
    last = []

    def step() -> None:
        last[:] = [answer(text=texts)["probabilities"].numpy()]

    return Job(step, lambda: last[0])


if __name__ == "__main__":
    serve(prepare)
