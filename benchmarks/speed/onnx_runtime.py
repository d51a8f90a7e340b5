"""ONNX Runtime on the weights of transformers; it computes in float32 on CPUs."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

from benchmarks.speed import pytorch
from benchmarks.speed.turns import Job, serve


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` asks for."""
    names = list(pytorch.example())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(
            pytorch.Traceable(settings),
            tuple(pytorch.example().values()),
            path,
            input_names=names,
            output_names=["output"],
            dynamic_axes={name: {0: "batch", 1: "length"} for name in names},
            dynamo=False,
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = settings["threads"]
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])

    def run(arrays: dict[str, np.ndarray]) -> np.ndarray:
        return session.run(["output"], arrays)[0]

    return pytorch.converted(settings, run)


if __name__ == "__main__":
    serve(prepare)
