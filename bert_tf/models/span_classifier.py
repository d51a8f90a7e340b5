"""Where an answer starts and ends (question answering; paper, section 4.2)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf.layers.linear import Linear
from bert_tf.models.encoder import Encoder
from bert_tf.models.encoder_model import EncoderModel
from bert_tf.models.padding import hide_padding


@keras.saving.register_keras_serializable("bert_tf")
class SpanClassifier(EncoderModel):
    """A linear layer gives every token a score as the start and as the end of the answer.

    Called with the encoder's inputs; returns a dict of float32 logits, `start` and `end`, both
    [batch, seq_len], at padding so low that their probability is 0. Compile it with
    `**SpanClassifier.losses_to_compile()`; `fit` takes targets `start` and `end`, int32 [batch].

    Args:
        encoder: the encoder.
    """

    def __init__(self, encoder: Encoder, **kwargs: Any):
        kwargs.setdefault("name", "span_classifier")
        super().__init__(encoder, {}, uses_pooler=False, **kwargs)
        self.span = Linear(
            2,
            initializer_range=encoder.config.initializer_range,
            name="span",
            dtype=self.dtype_policy,
        )
        self.build()

    @staticmethod
    def losses_to_compile() -> dict[str, Any]:
        """Arguments for `compile`: the mean of the cross-entropies of start and end."""
        return {
            "loss": {
                name: keras.losses.SparseCategoricalCrossentropy(from_logits=True)
                for name in ("start", "end")
            },
            "loss_weights": {"start": 0.5, "end": 0.5},
        }

    def build(self, input_shape: Any = None) -> None:
        """Creates the head's weights."""
        self.span.build((None, self.encoder.config.output_size))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
        """See the class."""
        encoded = self.encoder.encode(inputs, training=training)
        scores = encoded.layout.restore(tf.cast(self.span(encoded.layers[-1]), tf.float32))
        start, end = tf.unstack(scores, axis=-1)
        mask = inputs["input_mask"]
        return {"start": hide_padding(start, mask), "end": hide_padding(end, mask)}
