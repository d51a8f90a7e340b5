"""ONNX Runtime on the weights of transformers; it computes in float32 on CPUs."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from benchmarks.speed import converted
from benchmarks.speed.turns import Job, serve


def open_session(settings: dict[str, Any], profile: Path | None = None) -> Any:
    """A session of the model.

    With `profile`, the session records its operations in a file whose name starts with that path.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings["threads"]
    if profile is not None:
        options.enable_profiling, options.profile_file_prefix = True, str(profile)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        converted.write("onnx", settings, path)
        return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names."""
    session = open_session(settings)

    def run(arrays: dict[str, np.ndarray]) -> np.ndarray:
        return session.run(["output"], arrays)[0]

    return converted.job(settings, run)


if __name__ == "__main__":
    serve(prepare)
