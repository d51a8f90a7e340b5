"""A label for each token (named entities; paper, section 5.3)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf.layers.dropout import Dropout
from bert_tf.layers.linear import Linear
from bert_tf.models.encoder import Encoder
from bert_tf.models.weighted_loss import Targets, WeightedModel

# The label of tokens that are not classified: padding, special tokens, later pieces of a word.
IGNORED = -1


@keras.saving.register_keras_serializable("bert_tf")
class TokenClassifier(WeightedModel):
    """A linear layer on every token's vector, behind dropout.

    Called with the encoder's inputs; returns float32 logits [batch, seq_len, num_classes], zero at
    padding. The loss is built in; `fit` takes labels int32 [batch, seq_len], -1 where a token is
    not to be classified.

    Args:
        encoder: the encoder.
        num_classes: number of labels.
        dropout: rate on the vectors; None takes the encoder's.
    """

    def __init__(
        self,
        encoder: Encoder,
        num_classes: int,
        dropout: float | None = None,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "token_classifier")
        head = {"num_classes": num_classes, "dropout": dropout}
        super().__init__(encoder, head, {"tokens": ""}, uses_pooler=False, **kwargs)
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
        encoded = self.encoder.encode(inputs, training=training)
        tokens = self.dropout(encoded.layers[-1], training=training)
        return encoded.layout.restore(tf.cast(self.classifier(tokens), tf.float32))

    def targets(self, y: tf.Tensor) -> dict[str, Targets]:
        """Every label that is not -1 weighs 1."""
        return {"tokens": tag_targets(y)}

    def logits(self, y_pred: tf.Tensor) -> dict[str, tf.Tensor]:
        """What `call` returns."""
        return {"tokens": y_pred}


def tag_targets(labels: tf.Tensor) -> Targets:
    """int [batch, seq_len] with -1 at ignored tokens -> labels and weights."""
    labels = tf.cast(labels, tf.int32)
    counted = tf.not_equal(labels, IGNORED)
    return Targets(tf.where(counted, labels, 0), tf.cast(counted, tf.float32))
