"""Which of several continuations fits (SWAG; paper, section 4.4)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf.layers.dropout import Dropout
from bert_tf.layers.linear import Linear
from bert_tf.models.encoder import Encoder
from bert_tf.models.encoder_model import EncoderModel
from bert_tf.models.padding import hide_padding


@keras.saving.register_keras_serializable("bert_tf")
class MultipleChoice(EncoderModel):
    """One vector scores the pooled output of each choice.

    Called with the encoder's inputs, each [batch, choices, seq_len]; returns float32 logits
    [batch, choices], so low that the probability is 0 for a choice whose mask is all 0. Compile it
    with `SparseCategoricalCrossentropy(from_logits=True)`.

    Args:
        encoder: the encoder.
        dropout: rate on the pooled output; None takes the encoder's.
    """

    def __init__(self, encoder: Encoder, dropout: float | None = None, **kwargs: Any):
        kwargs.setdefault("name", "multiple_choice")
        super().__init__(encoder, {"dropout": dropout}, **kwargs)
        rate = encoder.config.hidden_dropout_prob if dropout is None else dropout
        self.dropout = Dropout(rate, name="dropout", dtype=self.dtype_policy)
        # The bias moves all choices alike; it is there because published checkpoints have one.
        self.choice = Linear(
            1,
            initializer_range=encoder.config.initializer_range,
            name="choice",
            dtype=self.dtype_policy,
        )
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the head's weights."""
        self.dropout.build((None, self.encoder.config.output_size))
        self.choice.build((None, self.encoder.config.output_size))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """See the class."""
        shape = tf.shape(inputs["input_mask"])
        rows = {
            name: tf.reshape(value, [shape[0] * shape[1], shape[2]])
            for name, value in inputs.items()
        }
        pooled = self.encoder.pooled(rows, training=training)
        pooled = self.dropout(pooled, training=training)
        scores = tf.reshape(tf.cast(self.choice(pooled), tf.float32), shape[:2])
        return hide_padding(scores, tf.reduce_max(inputs["input_mask"], axis=2))
