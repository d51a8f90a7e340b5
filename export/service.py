"""A model as it is served: a function of named string tensors, with its weights and assets."""

from collections.abc import Mapping

import keras
import tensorflow as tf

from bert_tf.text import Tokenizer

Tensors = dict[str, tf.Tensor]


class Service(tf.Module):
    """Strings in, answers out.

    A subclass sets `input_names` and writes `answer`. The Keras model is only closed over: what a
    SavedModel keeps are its variables and the traced functions.

    Args:
        model: the trained model.
        tokenizer: its tokenizer.
        labels: names of the classes, where it has classes.
    """

    def __init__(self, model: keras.Model, tokenizer: Tokenizer, labels: tuple[str, ...] = ()):
        super().__init__(name="service")
        self.weights = [weight.value for weight in model.weights]
        self.vocabulary, self.labels = tokenizer.vocabulary, labels

    input_names: tuple[str, ...]

    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """One string tensor [batch] for each input name -> the outputs, all [batch, ...]."""
        raise NotImplementedError

    def signature(self) -> tf.types.experimental.ConcreteFunction:
        """`answer` with one named argument for each input, for `serving_default`."""
        specs = {name: tf.TensorSpec([None], tf.string, name) for name in self.input_names}
        return tf.function(lambda **inputs: self.answer(inputs)).get_concrete_function(**specs)

    def endpoint(self) -> tf.types.experimental.GenericFunction:
        """`answer` as a function of one value: a dict, or the tensor where there is one input.

        `keras.layers.TFSMLayer` calls this, since it cannot call a signature of several inputs.
        """
        names = self.input_names

        @tf.function
        def serve(inputs: tf.Tensor | Mapping[str, tf.Tensor]) -> Tensors:
            return self.answer(inputs if isinstance(inputs, Mapping) else {names[0]: inputs})

        serve.get_concrete_function(
            {name: tf.TensorSpec([None], tf.string, name) for name in names}
        )
        if len(names) == 1:
            serve.get_concrete_function(tf.TensorSpec([None], tf.string, names[0]))
        return serve
