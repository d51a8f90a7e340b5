"""The fastest matrix products of this machine, which no contestant can surpass."""

from typing import Any

from benchmarks.speed.turns import Job, serve
from benchmarks.speed.works import SHAPES

# A product as large as this is as fast as any.
_SIZE = 2048
# Products in a step. After a pause, the first is slower.
_TIMES = 10
STEP_OPERATIONS = 2 * _SIZE**3 * _TIMES
# The peak is that of the faster library. In float32 PyTorch uses MKL, which is slow on processors
# that are not Intel's; TensorFlow uses oneDNN.
LIBRARIES = ("PyTorch", "TensorFlow")


def prepare(settings: dict[str, Any]) -> Job:
    """Products of two square matrices by a library, which `settings` name."""
    return {"PyTorch": _torch, "TensorFlow": _tensorflow}[settings["name"]](settings)


def _torch(settings: dict[str, Any]) -> Job:
    # Imported here, as the table, which shows the share of this peak, also works without PyTorch.
    import torch

    torch.set_num_threads(settings["threads"])
    dtype = getattr(torch, settings["precision"])
    one, other = (torch.randn(_SIZE, _SIZE).to(dtype) for _ in range(2))

    def step() -> None:
        with torch.inference_mode():
            for _ in range(_TIMES):
                torch.matmul(one, other)

    return Job(step)


def _tensorflow(settings: dict[str, Any]) -> Job:
    import tensorflow as tf

    # A part for each thread is faster than one product by all threads.
    threads = settings["threads"]
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    dtype = tf.as_dtype(settings["precision"])
    one, other = (tf.cast(tf.random.normal([_SIZE, _SIZE]), dtype) for _ in range(2))
    parts = [one[first::threads] for first in range(threads)]
    multiply = tf.function(lambda each: [part @ other for part in each], autograph=False)

    def step() -> None:
        for _ in range(_TIMES):
            multiply(parts)

    return Job(step)


def encoder_operations(shape: str, batch: int, length: int) -> float:
    """Number of adds and multiplies in the matrix products of an encoder of the shape."""
    layers, hidden, _ = SHAPES[shape]
    tokens = batch * length
    linear = 2 * tokens * (4 * hidden * hidden + 2 * hidden * 4 * hidden)
    attention = 2 * 2 * tokens * length * hidden
    return float(layers * (linear + attention))


if __name__ == "__main__":
    serve(prepare)
