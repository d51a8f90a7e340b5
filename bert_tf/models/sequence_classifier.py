"""One label, or one number, for a text or a pair of texts (paper, section 4.1)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf.layers.dropout import Dropout
from bert_tf.layers.linear import Linear
from bert_tf.models.encoder import Encoder
from bert_tf.models.encoder_model import EncoderModel


@keras.saving.register_keras_serializable("bert_tf")
class SequenceClassifier(EncoderModel):
    """A linear layer on the pooled output, behind dropout.

    Called with the encoder's inputs; returns float32 logits [batch, num_classes], or with one
    class (regression) the score [batch]. Compile it with
    `SparseCategoricalCrossentropy(from_logits=True)` or `MeanSquaredError()`.

    Args:
        encoder: the encoder.
        num_classes: number of labels; 1 means regression.
        dropout: rate on the pooled output; None takes the encoder's.
    """

    def __init__(
        self,
        encoder: Encoder,
        num_classes: int = 2,
        dropout: float | None = None,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "sequence_classifier")
        super().__init__(encoder, {"num_classes": num_classes, "dropout": dropout}, **kwargs)
        self.num_classes = num_classes
        rate = encoder.config.hidden_dropout_prob if dropout is None else dropout
        self.dropout = Dropout(rate, name="dropout", dtype=self.dtype_policy)
        self.classifier = Linear(
            num_classes,
            initializer_range=encoder.config.initializer_range,
            name="classifier",
            dtype=self.dtype_policy,
        )
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the head's weights."""
        self.dropout.build((None, self.encoder.config.output_size))
        self.classifier.build((None, self.encoder.config.output_size))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """See the class."""
        pooled = self.encoder.pooled(inputs, training=training)
        logits = self.classifier(self.dropout(pooled, training=training))
        logits = tf.cast(logits, tf.float32)
        return tf.squeeze(logits, -1) if self.num_classes == 1 else logits
