"""bert_tf's export in a process that only answers: texts to probabilities."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import benchmarks.lean  # noqa: F401  before TensorFlow

# isort: split
import tensorflow as tf

from benchmarks.speed import inputs
from benchmarks.speed.turns import Job, serve
from benchmarks.threads import set_threads


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names."""
    set_threads(settings)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        # In a process of its own: what exporting takes is no part of serving's memory.
        given = settings["weights"], str(model), "classification", settings["precision"]
        subprocess.run([sys.executable, "-m", "benchmarks.serving.exporting", *given], check=True)
        loaded = tf.saved_model.load(str(model))
    answer = loaded.signatures["serving_default"]
    texts = tf.constant(inputs.texts(settings["vocabulary_file"], settings["batch"]))
    last = []

    def step() -> None:
        last[:] = [answer(text=texts)["probabilities"].numpy()]

    return Job(step, lambda: last[0])


if __name__ == "__main__":
    serve(prepare)
