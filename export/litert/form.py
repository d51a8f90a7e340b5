"""What a model answers on a device: from one row of ids to numbers."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.text.packing import Cut

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


def of_scores(model: Any, *axes: int | None) -> DeviceForm:
    """A file that answers `scores`, what `call` of a task model computes, and what follows from it.

    These are the numbers among the outputs of `decode`. If one of them is what `call` computes, it
    keeps its name.

    Args:
        model: the task model.
        *axes: of `scores`, [batch, *axes], as `output` takes them.
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
    """An output, [batch, *axes].

    >>> output(3).shape
    TensorShape([None, 3])
    """
    return tf.TensorSpec([None, *axes], dtype)
