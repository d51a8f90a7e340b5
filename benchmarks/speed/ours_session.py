"""bert_tf's export through TensorFlow's C library, as `bert-tf predict` uses it."""

import ctypes
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.speed.exported import Make, exported, job
from benchmarks.speed.turns import Job, serve
from bert_tf.asking.session import SessionModel, c_library
from bert_tf.dependencies import prepare_environment, prepare_to_serve

_INT32 = 3


class IdsModel(SessionModel):
    """An export of ids, as a program in C calls it."""

    def call(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs for contiguous int32 arrays, under the names of the encoder's inputs."""
        tensors = {}
        for name, array in arrays.items():
            shape, size = (ctypes.c_int64 * array.ndim)(*array.shape), ctypes.c_size_t(array.nbytes)
            made = self._library.TF_AllocateTensor(_INT32, shape, array.ndim, size)
            start = self._library.TF_TensorData(ctypes.c_void_p(made))
            ctypes.memmove(start, array.ctypes.data, array.nbytes)
            tensors[name] = made
        return self._run("serving_default", tensors)


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names."""
    prepare_environment()
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(settings["intra_op"])
    os.environ["TF_NUM_INTEROP_THREADS"] = str(settings["inter_op"])
    prepare_to_serve(fixed_weights=settings["precision"] != "float32")
    with exported(settings) as folder:
        return job(settings, {"encode": _of_ids, "classify": _of_texts}[settings["work"]](folder))


def _of_ids(folder: str) -> Make:
    model = IdsModel(folder, c_library(), None)
    return lambda given: lambda: model.call(given)


def _of_texts(folder: str) -> Make:
    model = SessionModel.load(folder)
    assert model is not None

    def make(given: dict[str, Any]) -> Callable[[], dict[str, np.ndarray]]:
        rows = [{"text": text} for text in given["text"]]
        return lambda: model.ask("serving_default", rows)

    return make


if __name__ == "__main__":
    serve(prepare)
