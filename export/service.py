"""A model as it is served: functions of named tensors, with their weights and assets."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from bert_tf.config import RunConfig
from bert_tf.text import Tokenizer

Tensors = dict[str, tf.Tensor]


class Signature(NamedTuple):
    """One way to ask a SavedModel.

    Attributes:
        inputs: name -> what it takes; every input has a leading batch axis, which is None.
        answer: a dict of the inputs -> the outputs, all [batch, ...].
        example: one request of one row, as the values that `tf.constant` takes; it warms a server
            up and stands in the model card.
    """

    inputs: Mapping[str, tf.TensorSpec]
    answer: Callable[[Mapping[str, tf.Tensor]], Tensors]
    example: Mapping[str, Any]


class Service:
    """What is served of one model.

    A subclass says in `signatures` how it is asked. It closes over its Keras model: what a
    SavedModel keeps are the variables and the traced functions. Its constructor takes a model, its
    tokenizer and its labels, and then options of its own, all with defaults.

    Args:
        model: the trained model.
        tokenizer: its tokenizer.
        labels: names of the classes, where it has classes.
    """

    def __init__(self, model: keras.Model, tokenizer: Tokenizer, labels: tuple[str, ...] = ()):
        self.weights = [weight.value for weight in model.weights]
        self.vocabulary, self.labels = tokenizer.vocabulary, labels

    @staticmethod
    def options_of(config: RunConfig) -> dict[str, Any]:
        """The constructor's options that the configuration of a model's run decides."""
        return {"max_length": config.train.max_length}

    def signatures(self) -> dict[str, Signature]:
        """Every signature by its name; "serving_default" is one of them."""
        raise NotImplementedError


def strings(*names: str) -> dict[str, tf.TensorSpec]:
    """The inputs of a signature that takes one string a row under each name."""
    return {name: tf.TensorSpec([None], tf.string, name) for name in names}


def traced(signature: Signature) -> tf.types.experimental.ConcreteFunction:
    """The signature as a function with one named argument for each input."""
    function = tf.function(lambda **inputs: signature.answer(inputs))
    return function.get_concrete_function(**signature.inputs)


def endpoint(signature: Signature) -> tf.types.experimental.GenericFunction:
    """The signature as a function of one value: a dict, or the tensor where there is one input.

    `keras.layers.TFSMLayer` calls this, since it cannot call a signature of several inputs.
    """
    names = tuple(signature.inputs)

    @tf.function
    def serve(inputs: tf.Tensor | Mapping[str, tf.Tensor]) -> Tensors:
        return signature.answer(inputs if isinstance(inputs, Mapping) else {names[0]: inputs})

    serve.get_concrete_function(dict(signature.inputs))
    if len(names) == 1:
        serve.get_concrete_function(signature.inputs[names[0]])
    return serve
