"""TensorFlow checkpoint files: PREFIX.index and PREFIX.data-….

TensorFlow verifies the checksum of every block and tensor that it reads, and runs no code from the
files.
"""

import glob
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from bert_tf.checkpoints.tensors import Tensors, damaged
from bert_tf.compat import TrackableObjectGraph
from bert_tf.errors import UserError
from bert_tf.io.files import is_there

# The tensor of an object-based checkpoint with the graph of objects and their variables.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"

# The errors of TensorFlow's reader for damaged files.
_DAMAGE = (tf.errors.OpError, RuntimeError, ValueError, IndexError, OSError)


def open_prefix(prefix: Path) -> Tensors:
    """The tensors of the checkpoint whose path without ".index" is `prefix`."""
    data = sorted(prefix.parent.glob(f"{glob.escape(prefix.name)}.data-?????-of-?????"))
    if not data:
        raise UserError(f"there is no {prefix.name}.data-… next to {prefix}.index; copy it too")
    for file in (prefix.with_name(f"{prefix.name}.index"), *data):
        is_there(file, "checkpoint")
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        shapes = {n: tuple(s) for n, s in reader.get_variable_to_shape_map().items()}
        dtypes = reader.get_variable_to_dtype_map()
    except _DAMAGE as error:
        raise damaged(prefix, error) from None
    # TensorFlow allocates the size in the index before it reads a tensor, however large it is.
    claimed = sum(math.prod(shape) * dtypes[name].size for name, shape in shapes.items())
    there = sum(file.stat().st_size for file in data)
    if claimed > there:
        raise damaged(prefix, f"its index lists {claimed} bytes, but its data files have {there}")

    def read(name: str) -> np.ndarray:
        try:
            return reader.get_tensor(name)
        except _DAMAGE as error:
            raise damaged(prefix, error) from None

    return Tensors(shapes, read)


def read_object_graph(prefix: Path, tensors: Tensors) -> TrackableObjectGraph:
    """The graph of objects in the object-based checkpoint `prefix`, opened as `tensors`."""
    graph = TrackableObjectGraph()
    try:
        graph.ParseFromString(bytes(tensors.read(OBJECT_GRAPH)))
    except (DecodeError, TypeError):
        raise damaged(prefix, "its object graph cannot be read") from None
    return graph


def find_prefix(folder: Path) -> Path | None:
    """The prefix of the checkpoint in `folder`: bert_model.ckpt, or that of the last step."""
    prefixes = [file.with_suffix("") for file in sorted(folder.glob("*.index"))]
    published = [prefix for prefix in prefixes if prefix.name == "bert_model.ckpt"]
    return max(published or prefixes, key=_step, default=None)


def write_named(prefix: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a name-based checkpoint, as TensorFlow 1 did."""
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(arrays),
        shape_and_slices=[""] * len(arrays),
        tensors=[tf.constant(array) for array in arrays.values()],
    )


def _step(prefix: Path) -> int:
    number = prefix.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1
