"""A LiteRT file as the network of a task model: ids in, what the model's `call` returns out."""

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.compat import lite_interpreter
from bert_tf.encoder.encoder import INPUTS
from bert_tf.errors import UserError
from bert_tf.export.litert.conversion import padded, signature_name
from bert_tf.export.litert.form import DeviceForm

_DTYPES = {tf.float32: np.float32, tf.int32: np.int32}


class LiteNetwork:
    """Runs a LiteRT file row by row, each in the signature of the least length that it fits.

    Args:
        path: names the file in messages.
        model: the file.
        lengths: tokens of a row, of each signature.
        form: what the file answers.

    Raises:
        UserError: the file cannot be run, or does not answer so.
    """

    def __init__(self, path: str, model: bytes, lengths: Sequence[int], form: DeviceForm):
        self._form, self._lengths = form, sorted(lengths)
        # An interpreter has one memory for its tensors.
        self._lock = threading.Lock()
        try:
            self._interpreter = lite_interpreter(model, os.cpu_count() or 1, with_text=False)
            self._runners = {
                length: self._interpreter.get_signature_runner(signature_name(length, lengths))
                for length in lengths
            }
        except (ValueError, RuntimeError) as error:
            first = str(error).partition("\n")[0]
            raise UserError(f"{path} cannot be run ({first}); export it again") from None
        for length, runner in self._runners.items():
            found = {
                name: (details["dtype"], [*details["shape"]])
                for name, details in runner.get_output_details().items()
            }
            if found != self._expected(length):
                raise UserError(f"{path} does not answer as its description says; export it again")

    def _expected(self, length: int) -> dict[str, tuple[type, list[int]]]:
        """dtype and shape of each output of the signature for rows of `length` tokens."""
        return {
            name: (_DTYPES[spec.dtype], [1, *(length if n is None else n for n in spec.shape[1:])])
            for name, spec in self._form.outputs.items()
        }

    def __call__(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> Any:
        """What the `call` of the model returns, for the encoder's inputs [..., seq_len]."""
        features = [tf.cast(inputs[name], tf.int32) for name in INPUTS]
        rows = [tf.reshape(each, [-1, tf.shape(each)[-1]]) for each in features]
        specs = self._form.outputs
        dtypes = [spec.dtype for spec in specs.values()]
        found = tf.numpy_function(self._answers, rows, dtypes)
        outputs = {
            name: tf.ensure_shape(values, specs[name].shape)
            for name, values in zip(specs, found, strict=True)
        }
        return self._form.restore(outputs, inputs)

    def run(self, row: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What the file answers to one row of the encoder's inputs, int32 [seq_len]."""
        length = next(each for each in self._lengths if each >= len(row["input_mask"]))
        given = padded(row, length)
        with self._lock:
            return self._runners[length](**given)

    def _answers(self, *features: np.ndarray) -> list[np.ndarray]:
        """The outputs for rows of ids, mask and types, each int32 [rows, seq_len]."""
        width = features[0].shape[1]
        answers = []
        for values in zip(*features, strict=True):
            row = dict(zip(INPUTS, values, strict=True))
            # A row begins with its tokens, and ends with its padding.
            size = int(np.count_nonzero(row["input_mask"]))
            answers.append(self.run({name: each[:size] for name, each in row.items()}))
        return [
            np.stack([_fitted(answer[name][0], spec, width) for answer in answers])
            if answers
            else np.zeros([0, *(width if n is None else n for n in spec.shape[1:])], np.float32)
            for name, spec in self._form.outputs.items()
        ]


def _fitted(values: np.ndarray, spec: tf.TensorSpec, width: int) -> np.ndarray:
    """One row of an output, cut or filled up with zeros to the tokens of its batch."""
    if spec.shape.rank == 1:
        return values
    length = spec.shape[1] or width
    values = values[:length]
    return np.pad(values, [[0, length - len(values)], *[[0, 0]] * (values.ndim - 1)])
