"""Runs LiteRT files: as the network of a task model, or from strings to answers."""

import copy
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from bert_tf.asking import Outputs, Row, Text, encoded, without_nan
from bert_tf.compat import lite_interpreter, numpy_function, unresolved_operation
from bert_tf.encoder.encoder import INPUTS
from bert_tf.errors import UserError
from bert_tf.export.litert.conversion import padded, signature_name, without_padding
from bert_tf.export.litert.form import StringsForm

_DTYPES = {tf.float32: np.float32, tf.int32: np.int32, tf.int8: np.int8}


class LiteModel:
    """A LiteRT file, whose signatures, one for each of the `lengths`, run one at a time."""

    # Whether the file has operations of TensorFlow Text.
    with_text = False

    def __init__(self, path: str, model: bytes, lengths: Sequence[int], form: Any):
        # An interpreter has one memory for its tensors.
        self._lock, self._path = threading.Lock(), path
        self._form, self._lengths = form, sorted(lengths)
        try:
            self.interpreter = lite_interpreter(model, os.cpu_count() or 1, self.with_text)
            self._runners = {
                length: self.interpreter.get_signature_runner(signature_name(length, lengths))
                for length in lengths
            }
        except (ValueError, RuntimeError) as error:
            if missing := unresolved_operation(error):
                raise UserError(
                    f"{path} has the operation {missing} of TensorFlow Text, which this "
                    "interpreter lacks; open it with bert_tf.load, which registers it"
                ) from None
            first = str(error).partition("\n")[0]
            raise UserError(f"{path} cannot be run ({first}); export it again") from None
        for length, runner in self._runners.items():
            found = {
                name: (details["dtype"], [*details["shape"]])
                for name, details in runner.get_output_details().items()
            }
            expected = {
                name: (_DTYPES[spec.dtype], [1, *(n or length for n in spec.shape[1:])])
                for name, spec in form.outputs.items()
            }
            if found != expected:
                raise UserError(f"{path} does not answer as its description says; export it again")

    def answer(self, length: int, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        with self._lock:
            return without_nan(self._runners[length](**given), self._path)

    def joined(self, answers: Sequence[Outputs], width: int) -> Outputs:
        """The outputs of rows, each [1, ...], cut or filled up with zeros to `width` tokens."""
        outputs = {}
        for name, spec in self._form.outputs.items():
            sizes = [size or width for size in spec.shape[1:]]
            outputs[name] = np.zeros([len(answers), *sizes], _DTYPES[spec.dtype])
            for row, answer in enumerate(answers):
                values = answer[name][0][tuple(map(slice, sizes))]
                filled: tuple[int | slice, ...] = (row, *map(slice, values.shape))
                outputs[name][filled] = values
        return outputs


class LiteNetwork(LiteModel):
    """Runs a LiteRT file that takes ids, each row in the shortest signature that it fits into."""

    reads_rows: ClassVar[bool] = True

    def __call__(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> Any:
        features = [tf.cast(inputs[name], tf.int32) for name in INPUTS]
        rows = [tf.reshape(each, [-1, tf.shape(each)[-1]]) for each in features]
        specs = self._form.outputs
        dtypes = [spec.dtype for spec in specs.values()]
        found = numpy_function(self._answers, rows, dtypes)
        outputs = {
            name: tf.ensure_shape(values, specs[name].shape)
            for name, values in zip(specs, found, strict=True)
        }
        return self._form.restore(outputs, inputs)

    # The file of a `MaskedLM` fills the gaps itself.
    fill_gaps = __call__

    def function(self, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return compute

    def run(self, row: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The file's outputs for one row of the encoder's inputs, int32 [seq_len]."""
        length = next(each for each in self._lengths if each >= len(row["input_mask"]))
        return self.answer(length, padded(row, length))

    def _answers(self, *features: np.ndarray) -> list[np.ndarray]:
        """The outputs for rows of ids, mask and types, each int32 [rows, seq_len]."""
        width = features[0].shape[1]
        rows = without_padding(dict(zip(INPUTS, features, strict=True)))
        return [*self.joined([self.run(row) for row in rows], width).values()]


class LiteStrings(LiteModel):
    """Runs a LiteRT file that takes strings, in its one length."""

    with_text = True

    def run(self, request: Mapping[str, Text]) -> dict[str, np.ndarray]:
        """The file's outputs for one request, which has a text for each input."""
        # Only arrays of objects keep a NUL at the end of a string.
        given = {name: np.array([encoded(request[name])], object) for name in self._form.inputs}
        return self.answer(self._lengths[0], given)

    def answering(self, form: StringsForm) -> Callable[[str, Sequence[Row]], Outputs]:
        """The `ask` of the same file with another form of the same inputs and outputs."""
        other = copy.copy(self)
        other._form = form
        return other.ask

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        if signature != "serving_default":
            raise UserError(
                f"{self._path} takes strings, and has no signature {signature!r}; export a file "
                "that takes ids"
            )
        answers = [self.run(request) for row in rows for request in self._form.requests(row)]
        outputs = self.joined(answers, self._lengths[0])
        return {name: np.asarray(each) for name, each in self._form.respond(outputs, rows).items()}
