"""ONNX Runtime on the weights of transformers; it computes in float32 on CPUs."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from benchmarks.speed import converted
from benchmarks.speed.turns import Job, serve


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings["threads"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        converted.write("onnx", settings, path)
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])

    def run(arrays: dict[str, np.ndarray]) -> np.ndarray:
        return session.run(["output"], arrays)[0]

    return converted.job(settings, run)


if __name__ == "__main__":
    serve(prepare)
