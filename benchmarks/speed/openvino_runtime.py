"""OpenVINO on the weights of transformers, in a given precision."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import openvino

from benchmarks.speed import converted
from benchmarks.speed.turns import Job, serve

HINTS = {"float32": "f32", "bfloat16": "bf16"}


def compiled_model(settings: dict[str, Any], **options: Any) -> Any:
    """The model, compiled with more options of OpenVINO's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        converted.write("openvino", settings, path)
        return openvino.Core().compile_model(
            path,
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": HINTS[settings["precision"]],
                "INFERENCE_NUM_THREADS": settings["threads"],
                "PERFORMANCE_HINT": "LATENCY",
            }
            | options,
        )


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names."""
    compiled = compiled_model(settings)

    def run(arrays: dict[str, np.ndarray]) -> np.ndarray:
        return compiled(arrays)[0]

    return converted.job(settings, run)


if __name__ == "__main__":
    serve(prepare)
