"""The fastest matrix products of this machine, which nothing that computes them can surpass."""

from typing import Any

from benchmarks.speed.turns import Job, serve
from benchmarks.speed.works import SHAPES

# A product as large as this is as fast as any: 2 * SIZE**3 operations.
SIZE = 2048


def prepare(settings: dict[str, Any]) -> Job:
    """One product of two square matrices, by PyTorch, which has oneDNN compute it."""
    # Here, as the table, which knows the share of this peak, is also printed without PyTorch.
    import torch

    torch.set_num_threads(settings["threads"])
    dtype = getattr(torch, settings["precision"])
    one, other = (torch.randn(SIZE, SIZE).to(dtype) for _ in range(2))

    def step() -> None:
        with torch.inference_mode():
            torch.matmul(one, other)

    return Job(step)


def encoder_operations(shape: str, batch: int, length: int) -> float:
    """Operations of the matrix products that an encoder of the shape needs, one add or multiply."""
    layers, hidden, _ = SHAPES[shape]
    tokens = batch * length
    linear = 2 * tokens * (4 * hidden * hidden + 2 * hidden * 4 * hidden)
    attention = 2 * 2 * tokens * length * hidden
    return float(layers * (linear + attention))


if __name__ == "__main__":
    serve(prepare)
