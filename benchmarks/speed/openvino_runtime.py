"""OpenVINO on the weights of transformers, told which precision to compute in."""

from typing import Any

import numpy as np
import openvino
import torch

from benchmarks.speed import pytorch
from benchmarks.speed.turns import Job, serve

_HINTS = {"float32": "f32", "bfloat16": "bf16"}


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` asks for."""
    with torch.inference_mode():
        model = openvino.convert_model(
            pytorch.Traceable(settings),
            example_input=pytorch.example(),
            input=[(name, [-1, -1]) for name in pytorch.example()],
        )
    compiled = openvino.Core().compile_model(
        model,
        "CPU",
        {
            "INFERENCE_PRECISION_HINT": _HINTS[settings["precision"]],
            "INFERENCE_NUM_THREADS": settings["threads"],
            "PERFORMANCE_HINT": "LATENCY",
        },
    )

    def run(arrays: dict[str, np.ndarray]) -> np.ndarray:
        return compiled(arrays)[0]

    return pytorch.converted(settings, run)


if __name__ == "__main__":
    serve(prepare)
