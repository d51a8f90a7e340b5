"""An export in a program that imports only TensorFlow and tensorflow-text."""

from typing import Any

import benchmarks.lean  # noqa: F401  before TensorFlow

# isort: split
import tensorflow as tf

from benchmarks.serving.contestant import Answerer, run
from benchmarks.serving.texts import OUTPUT
from benchmarks.threads import set_threads


def load(settings: dict[str, Any]) -> Answerer:
    """A function that answers a batch of texts with the texts of labels or answers."""
    set_threads(settings)
    loaded = tf.saved_model.load(settings["model"])
    signature, output = loaded.signatures["serving_default"], OUTPUT[settings["task"]]

    def answer(texts: dict[str, list[str]], keep: Any = loaded) -> list[str]:
        outputs = signature(**{name: tf.constant(each) for name, each in texts.items()})
        values = {name: value.numpy() for name, value in outputs.items()}
        return [text.decode() for text in values[output]]

    return answer


if __name__ == "__main__":
    run(load)
