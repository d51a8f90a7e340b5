"""OpenVINO on the weights of transformers, in a given precision."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import openvino

from benchmarks.speed import converted
from benchmarks.speed.turns import Job, serve

_HINTS = {"float32": "f32", "bfloat16": "bf16"}


def compiled(model: Any, precision: str, threads: int, **options: Any) -> Any:
    """A model, or the file of one, compiled for answers one by one; `options` are OpenVINO's."""
    usual = {
        "INFERENCE_PRECISION_HINT": _HINTS[precision],
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    return openvino.Core().compile_model(model, "CPU", usual | options)


def compiled_model(settings: dict[str, Any], **options: Any) -> Any:
    """The model that `settings` name, compiled."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        converted.write("openvino", settings, path)
        return compiled(path, settings["precision"], settings["threads"], **options)


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names."""
    model = compiled_model(settings)

    def run(arrays: dict[str, np.ndarray]) -> np.ndarray:
        return model(arrays)[0]

    return converted.job(settings, run)


if __name__ == "__main__":
    serve(prepare)
