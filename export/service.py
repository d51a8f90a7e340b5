"""A model as it is served: functions of named tensors, with their weights and assets."""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from bert_tf.asking.record import Record
from bert_tf.checkpoints.description import describe
from bert_tf.encoder.encoder import INPUTS
from bert_tf.io.vocabulary import file_text
from bert_tf.tasks import long_texts, registry
from bert_tf.text import Tokenizer

Tensors = dict[str, tf.Tensor]


class Signature(NamedTuple):
    """One way to call a SavedModel; only bert_tf calls an inner one.

    Inputs and outputs have a leading batch axis. The example is a request of one row.
    """

    inputs: Mapping[str, tf.TensorSpec]
    answer: Callable[[Mapping[str, tf.Tensor]], Tensors]
    example: Mapping[str, Any]
    is_inner: bool = False

    def example_tensors(self) -> Tensors:
        return {n: tf.constant(self.example[n], spec.dtype) for n, spec in self.inputs.items()}


class Service(abc.ABC):
    """One model as a SavedModel serves it; its functions close over the Keras model."""

    # What the model does, for the model card; None takes the task of the model's origin.
    task: str | None = None
    # Whether a program that loads it may train it.
    trains: ClassVar[bool] = False

    def __init__(self, tokenizer: Tokenizer, labels: tuple[str, ...] = ()):
        self.tokenizer, self.labels = tokenizer, labels

    @abc.abstractmethod
    def signatures(self) -> dict[str, Signature]:
        """Every signature by its name; "serving_default" is one of them."""

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the model card says about the model."""

    @abc.abstractmethod
    def attributes(self) -> dict[str, Any]:
        """The attributes besides `serve` of the loaded SavedModel, the variables among them."""

    def assets(self) -> dict[str, str]:
        """Name -> text of the files under `assets`, for people; the graph has its own copies."""
        lines = {"vocab.txt": self.tokenizer.vocabulary, "labels.txt": self.labels}
        return {name: file_text(each) for name, each in lines.items() if each}


def record_of(model: Any, lengths: Sequence[int], inputs: str, precision: str) -> Record:
    """What the export of a task model says about it; see `Record`."""
    settings = describe(model, model.tokenizer).to_dict()
    cuts = model.cuts_texts and not long_texts.reader(model).reads([2**62] * len(model.columns))
    lists = registry.lists_of(type(model))
    return Record(settings, tuple(lengths), inputs, precision, lists, cuts)


def strings(*names: str) -> dict[str, tf.TensorSpec]:
    """The inputs of a signature that takes one string a row under each name."""
    return {name: tf.TensorSpec([None], tf.string, name) for name in names}


def ids(rank: int = 2) -> dict[str, tf.TensorSpec]:
    """The inputs of a signature that takes the encoder's inputs, int32 of this rank."""
    return {name: tf.TensorSpec([None] * rank, tf.int32, name) for name in INPUTS}


def traced(signature: Signature) -> tf.types.experimental.ConcreteFunction:
    """The signature as a function with one named argument for each input."""
    function = tf.function(lambda **inputs: signature.answer(inputs), autograph=False)
    return function.get_concrete_function(**signature.inputs)


def endpoint(
    answer: tf.types.experimental.ConcreteFunction, signature: Signature
) -> tf.types.experimental.GenericFunction:
    """The signature as a function of a dict, or of one tensor, for `keras.layers.TFSMLayer`."""
    names = tuple(signature.inputs)

    @tf.function(autograph=False)
    def serve(inputs: tf.Tensor | Mapping[str, tf.Tensor]) -> Tensors:
        return answer(**(inputs if isinstance(inputs, Mapping) else {names[0]: inputs}))

    serve.get_concrete_function(dict(signature.inputs))
    if len(names) == 1:
        serve.get_concrete_function(signature.inputs[names[0]])
    return serve
