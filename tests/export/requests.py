"""Asking exports: requests for any signature of texts, and a session as servers have one."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

TEXTS = ["the cat [MASK] on the mat's log.", "", "dogs ran\N{SNOWMAN} é\0x [MASK]", "a fish, " * 40]


def request(signature: Any, times: int = 1) -> dict[str, tf.Tensor]:
    """A batch of `times` times four rows for a loaded signature; lists have two texts."""
    inputs = {}
    for name, spec in signature.structured_input_signature[1].items():
        texts = tf.constant(TEXTS * times)
        inputs[name] = texts if spec.shape.rank == 1 else tf.stack([texts, texts[::-1]], axis=1)
    return inputs


def assert_same(found: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float) -> None:
    """Raises AssertionError unless two answers have equal texts and places, and close numbers."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        value, same = np.asarray(value), np.asarray(found[name])
        assert (same.dtype, same.shape) == (value.dtype, value.shape), name
        if value.dtype.kind == "f":
            np.testing.assert_allclose(same, value, atol=tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(same, value, err_msg=name)


def meta_graph(folder: Path) -> meta_graph_pb2.MetaGraphDef:
    """The graph and the objects of a SavedModel."""
    file = folder / "saved_model.pb"
    (found,) = saved_model_pb2.SavedModel.FromString(file.read_bytes()).meta_graphs
    return found


def in_session(folder: Path) -> Callable[..., dict[str, np.ndarray]]:
    """Loads a SavedModel as TensorFlow Serving does; gives a function that calls a signature.

    A session has one graph with all functions merged into it; TensorFlow 2 runs functions.
    """
    graph = tf.Graph()
    with graph.as_default():
        session = tf.compat.v1.Session()
        meta_graph = tf.compat.v1.saved_model.load(session, ["serve"], str(folder))

    def ask(name: str, **inputs: tf.Tensor) -> dict[str, np.ndarray]:
        signature = meta_graph.signature_def[name]
        feeds = {signature.inputs[key].name: value.numpy() for key, value in inputs.items()}
        return session.run({k: info.name for k, info in signature.outputs.items()}, feeds)

    return ask
