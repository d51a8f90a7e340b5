"""Rows of ids, made from texts, from which the ranges of integers are chosen."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from bert_tf.asking import batches
from bert_tf.asking.row_files import read_blocks
from bert_tf.compat import numpy_function
from bert_tf.encoder.encoder import INPUTS
from bert_tf.errors import UserError
from bert_tf.export.litert.conversion import Row, without_padding

# At most this number of rows decides the ranges of a SavedModel.
MOST_ROWS = 512
_NOTHING = (
    "the calibration has no texts; give a few hundred texts like those that the model will read"
)


def rows_of_texts(model: Any, x: Any) -> list[Row]:
    """The rows that `model.predict(x)` gives the encoder, int32 [seq_len] without padding."""
    if isinstance(x, list) and not x:
        raise UserError(_NOTHING)
    return _recorded(model, lambda recording: type(model).answers(recording, x, verbose=0))


def rows_of_file(model: Any, path: str) -> list[Row]:
    """As `rows_of_texts`, for a file of texts."""
    blocks = read_blocks(path, model.ranks("serving_default"))
    lines = [line for rows, _ in blocks for line in rows]
    if not lines:
        raise UserError(_NOTHING)
    return _recorded(model, lambda r: [*batches(r, "serving_default", lines, verbose=0)])


def rows_of_training(task: Any, model: Any) -> list[Row]:
    """As `rows_of_texts`, for the first training rows of a run, given its `tasks.task.Task`."""
    rows = task.read(next(iter(task.files("train").values()))).take(range(MOST_ROWS))
    return _recorded(model, lambda recording: recording.infer(rows))


def _recorded(model: Any, answer: Callable[[Any], Any]) -> list[Row]:
    """The rows that a model gives its encoder while `answer` makes a copy of it answer."""
    recorder = _Recorder(model)
    answer(model.with_network(recorder))
    return recorder.rows


class _Recorder:
    """A network (`bert_tf.tasks.task_model.Network`) that records the rows it gives the model."""

    reads_rows: ClassVar[bool] = True

    def __init__(self, model: Any):
        self._model = model
        self.rows: list[Row] = []

    def __call__(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> Any:
        self._record(inputs)
        return self._model(inputs, training=False)

    def function(self, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def recorded(inputs: Any) -> Any:
            if INPUTS[0] in inputs:
                self._record(inputs)
            return compute(inputs)

        return recorded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def _record(self, inputs: Mapping[str, tf.Tensor]) -> None:
        """Makes the graph keep the rows of the encoder's inputs, each int32 [..., seq_len]."""

        def kept(*features: np.ndarray) -> np.ndarray:
            self.rows += without_padding(dict(zip(INPUTS, features, strict=True)))
            return np.zeros([], np.int32)

        rows = [tf.reshape(inputs[name], [-1, tf.shape(inputs[name])[-1]]) for name in INPUTS]
        numpy_function(kept, [tf.cast(each, tf.int32) for each in rows], tf.int32)
