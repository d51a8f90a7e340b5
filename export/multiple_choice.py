"""Serving a `MultipleChoice` model: a context with choices in, the one that fits out."""

from collections.abc import Mapping

import tensorflow as tf

from bert_tf.decoding.chunks import map_in_chunks
from bert_tf.models import MultipleChoice
from bert_tf.text import GroupPreprocessor, Tokenizer
from export.service import Service, Signature, Tensors

_EXAMPLE = {
    "context": ["The kettle whistles."],
    "choices": [["She pours the tea.", "She waters the roof.", "It begins to snow upwards."]],
}


class MultipleChoiceService(Service):
    """`context` and `choices` -> `choice` and `probabilities`.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        max_length: most tokens of a context with a choice, longer ones are cut; by default as many
            as the model has positions.
    """

    def __init__(
        self,
        model: MultipleChoice,
        tokenizer: Tokenizer,
        max_length: int | None = None,
    ):
        super().__init__(model, tokenizer)
        max_length = max_length or model.encoder.config.max_position_embeddings
        self._preprocess = GroupPreprocessor(tokenizer, max_length)

    def signatures(self) -> dict[str, Signature]:
        """One signature."""
        inputs = {
            "context": tf.TensorSpec([None], tf.string, "context"),
            "choices": tf.TensorSpec([None, None], tf.string, "choices"),
        }
        return {"serving_default": Signature(inputs, self.answer, _EXAMPLE)}

    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`choice` int32 [batch], -1 where there is none, and `probabilities` float32
        [batch, choices], 0 for a choice "", which is padding.
        """
        choices = inputs["choices"]
        shape = tf.shape(choices)
        contexts = tf.tile(inputs["context"][:, tf.newaxis], [1, shape[1]])
        features = self._preprocess([tf.reshape(each, [-1]) for each in (contexts, choices)])
        # A choice's score does not depend on the others, so that each can be a row by itself.
        scores = map_in_chunks(lambda rows: self.model(_alone(rows), training=False), features)
        is_choice = choices != ""
        scores = tf.where(is_choice, tf.reshape(scores, shape), -float("inf"))
        probabilities = tf.where(is_choice, tf.nn.softmax(scores), 0.0)
        # One more column, so that there is something to choose from.
        best = tf.argmax(tf.pad(probabilities, [[0, 0], [0, 1]]), axis=1, output_type=tf.int32)
        return {
            "choice": tf.where(tf.reduce_any(is_choice, axis=1), best, -1),
            "probabilities": probabilities,
        }


def _alone(rows: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Inputs [rows, seq_len] -> [rows, 1, seq_len]."""
    return {name: values[:, tf.newaxis, :] for name, values in rows.items()}
