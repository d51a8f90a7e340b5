"""The form of a LiteRT file, and what a model answers on a device: from one row to numbers."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.export import LITE_PRECISIONS, Inputs
from bert_tf.text.packing import Cut

Tensors = dict[str, tf.Tensor]
# The encoder's inputs of a row, each int32 [seq_len] without padding.
Row = dict[str, np.ndarray]
# The fewest tokens of a row: [CLS] a [SEP] b [SEP]. A row with a question has room for the longest
# question, three special tokens and one token of the context.
_LEAST, _BESIDE_QUESTION = 5, 4


@dataclasses.dataclass(frozen=True)
class LiteForm:
    """How a LiteRT file computes. It has rows of `lengths`; None is the model's `max_length`.

    "float16" stores the weights in half the size; "int8" stores them in a quarter and computes
    products in int8, whose ranges `calibration` decides.
    """

    precision: str = "float32"
    lengths: Sequence[int] | None = None
    inputs: Inputs = "ids"
    calibration: Sequence[Row] | None = None

    def checked(self, model: Any) -> "LiteForm":
        if self.precision not in LITE_PRECISIONS:
            raise UserError(
                f"unknown precision {self.precision!r} for a LiteRT file; choose one of "
                f"{', '.join(LITE_PRECISIONS)}"
            )
        if self.calibration is not None and self.precision != "int8":
            raise UserError("calibration is for precision int8; remove it, or choose int8")
        lengths = self._lengths(model)
        if self.inputs == "strings" and (self.calibration is not None or len(lengths) > 1):
            raise UserError(
                "a file that takes strings has one fixed length and no calibration; remove "
                "lengths and calibration"
            )
        if self.calibration is not None and len(lengths) > 1:
            known = ", ".join(map(str, lengths))
            raise UserError(f"a calibration is for one length; give one of {known}")
        if self.calibration is None:
            return dataclasses.replace(self, lengths=lengths)
        fitting = [row for row in self.calibration if len(row["input_mask"]) <= lengths[-1]]
        if not fitting:
            raise UserError(
                f"no text of the calibration fits into {lengths[-1]} tokens; give shorter texts, "
                "or a larger length"
            )
        return dataclasses.replace(self, lengths=lengths, calibration=fitting)

    def _lengths(self, model: Any) -> list[int]:
        """The lengths of rows; a row of a model that reads windows has them end to end."""
        longest = model.max_length
        if model.long_text != "windows":
            question = getattr(model, "max_question_length", None)
            least = _LEAST if question is None else question + _BESIDE_QUESTION
            for length in self.lengths or ():
                if not least <= length <= longest:
                    raise UserError(
                        f"length is {length}; it must be from {least} to the max_length of the "
                        f"model, {longest}"
                    )
            return sorted({*(self.lengths or [longest])})
        kind, most = type(model).__name__, model.max_windows
        if most is None:
            raise UserError(
                "a LiteRT file reads a fixed number of windows at most; load the model with one, "
                f"as in {kind}.from_checkpoint(…, max_windows=8), and export that"
            )
        if self.inputs == "strings":
            raise UserError(
                "a LiteRT file that takes strings reads no windows, as this model does; export "
                "one that takes ids, or load the model with long_text='head_and_tail'"
            )
        counts = {most, *(2**power for power in range(most.bit_length()) if 2**power < most)}
        lengths = sorted({*(self.lengths or (longest * count for count in counts))})
        for length in lengths:
            if length % longest or not longest <= length <= longest * most:
                raise UserError(
                    f"length is {length}; a row of this model is 1 to {most} windows "
                    f"(max_windows) of {longest} tokens (max_length)"
                )
        return lengths


@dataclasses.dataclass(frozen=True)
class DeviceForm:
    """A model of one task as a device calls it, with operations and static shapes of LiteRT.

    An axis of unknown size after the batch axis is the axis of tokens. `answer` takes the encoder's
    inputs, int32 [1, seq_len]. `restore` makes the result of `call` from outputs and inputs.
    """

    outputs: Mapping[str, tf.TensorSpec]
    answer: Callable[[Mapping[str, tf.Tensor]], Tensors]
    restore: Callable[[Mapping[str, tf.Tensor], Mapping[str, tf.Tensor]], Any]


@dataclasses.dataclass(frozen=True)
class StringsForm:
    """A model of one task as a device calls it with texts.

    `answer` takes texts, string [1], a `LiteTokenizer` and a number of tokens. `requests` are those
    of one row of `predict`. `respond` makes `serving_default`'s outputs from all answers and rows.
    """

    inputs: Sequence[str]
    outputs: Mapping[str, tf.TensorSpec]
    answer: Callable[[Mapping[str, tf.Tensor], Any, int], Tensors]
    requests: Callable[[Mapping[str, Any]], list[Mapping[str, Any]]]
    respond: Callable[[Mapping[str, np.ndarray], Sequence[Mapping[str, Any]]], Mapping[str, Any]]


def of_scores(model: Any, *axes: int | None) -> DeviceForm:
    """A file that answers `scores`, [batch, *axes], the result of a task model's `call`.

    It answers the numbers of `decode` too. If `scores` is one of these, it has its name there.
    """

    def numbers(scores: tf.Tensor) -> Tensors:
        found = model.decode(scores)
        found = {name: each for name, each in found.items() if each.dtype != tf.string}
        is_there = any(each is scores for each in found.values())
        return found if is_there else found | {"scores": scores}

    with tf.Graph().as_default():
        scores = tf.compat.v1.placeholder(tf.float32, [None, *axes])
        found = numbers(scores)
        (own,) = (name for name, each in found.items() if each is scores)
        outputs = {name: tf.TensorSpec(each.shape, each.dtype) for name, each in found.items()}
    return DeviceForm(
        outputs, lambda features: numbers(model.network()(features)), lambda given, _: given[own]
    )


def of_packed(form: DeviceForm, names: Sequence[str], cut: Cut = "end") -> Callable[..., Tensors]:
    """The `answer` of a `StringsForm` whose texts become one row."""

    def answer(given: Mapping[str, tf.Tensor], tokenizer: Any, length: int) -> Tensors:
        return form.answer(tokenizer.packed([given[name] for name in names], length, cut))

    return answer


def output(*axes: int | None, dtype: tf.DType = tf.float32) -> tf.TensorSpec:
    """An output, [batch, *axes]."""
    return tf.TensorSpec([None, *axes], dtype)
