"""What a model answers on a device: from one row of ids to numbers."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Tensors = dict[str, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class DeviceForm:
    """A model of one task as a device calls it.

    Attributes:
        outputs: name -> what it is, [batch, ...]; an axis of unknown size after that is the axis of
            the tokens.
        answer: the encoder's inputs, int32 [1, seq_len] -> the outputs. It uses operations that
            LiteRT has, and static shapes.
        restore: (the outputs, the encoder's inputs), any batch, -> what the model's `call` returns,
            from which Python makes the same answers as from the model itself.
    """

    outputs: Mapping[str, tf.TensorSpec]
    answer: Callable[[Mapping[str, tf.Tensor]], Tensors]
    restore: Callable[[Mapping[str, tf.Tensor], Mapping[str, tf.Tensor]], Any]


@dataclasses.dataclass(frozen=True)
class StringsForm:
    """A model of one task as a device calls it with texts.

    Attributes:
        inputs: names of the texts of a request.
        outputs: as in `DeviceForm`, of a request.
        answer: (each text, string [1], a `LiteTokenizer`, tokens of a row) -> the outputs.
        requests: a row as `predict` has it -> the requests that it takes.
        respond: (the outputs of all requests, [requests, ...], the rows) -> the outputs of
            `serving_default`, [rows, ...].
    """

    inputs: Sequence[str]
    outputs: Mapping[str, tf.TensorSpec]
    answer: Callable[[Mapping[str, tf.Tensor], Any, int], Tensors]
    requests: Callable[[Mapping[str, Any]], list[Mapping[str, Any]]]
    respond: Callable[[Mapping[str, np.ndarray], Sequence[Mapping[str, Any]]], Mapping[str, Any]]


def of_packed(form: DeviceForm, names: Sequence[str]) -> Callable[..., Tensors]:
    """The `answer` of a `StringsForm` whose texts become one row."""

    def answer(given: Mapping[str, tf.Tensor], tokenizer: Any, length: int) -> Tensors:
        return form.answer(tokenizer.packed([given[name] for name in names], length))

    return answer


def output(*axes: int | None, dtype: tf.DType = tf.float32) -> tf.TensorSpec:
    """An output, [batch, *axes].

    >>> output(3).shape
    TensorShape([None, 3])
    """
    return tf.TensorSpec([None, *axes], dtype)
