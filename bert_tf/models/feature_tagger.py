"""Tagging with a frozen encoder: the feature-based approach (paper, section 5.3, table 7)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.layers.linear import Linear
from bert_tf.models.encoder import Encoded, Encoder
from bert_tf.models.token_classifier import tag_targets
from bert_tf.models.weighted_loss import Targets, WeightedModel

# The rows of table 7.
FEATURES = (
    "embeddings",
    "second_to_last",
    "last",
    "sum_last_four",
    "concat_last_four",
    "sum_all",
)


@keras.saving.register_keras_serializable("bert_tf")
class FeatureTagger(WeightedModel):
    """Two layers of bidirectional LSTM over the activations of an encoder that is not trained.

    Inputs, outputs and labels are those of `TokenClassifier`.

    Args:
        encoder: the encoder; it is frozen, and runs without dropout.
        num_classes: number of labels.
        features: which activations: "embeddings", "second_to_last", "last", "sum_last_four",
            "concat_last_four" or "sum_all".
        lstm_units: width of the LSTM in each direction; the paper's is 768.

    Raises:
        UserError: unknown features, fewer layers than they need, or an encoder with a BiLSTM.
    """

    def __init__(
        self,
        encoder: Encoder,
        num_classes: int,
        features: str = "concat_last_four",
        lstm_units: int = 768,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "feature_tagger")
        head = {"num_classes": num_classes, "features": features, "lstm_units": lstm_units}
        super().__init__(encoder, head, {"tokens": ""}, uses_pooler=False, **kwargs)
        if features not in FEATURES:
            raise UserError(f"unknown features {features!r}; choose one of {', '.join(FEATURES)}")
        layers = encoder.config.num_hidden_layers
        needed = {"second_to_last": 2, "sum_last_four": 4, "concat_last_four": 4}.get(features, 1)
        if layers < needed:
            raise UserError(f"features {features} need {needed} layers; the encoder has {layers}")
        if encoder.config.bilstm:
            raise UserError("features have a BiLSTM of their own; leave out model.bilstm")
        encoder.trainable = False
        self.features = features
        policy = {"dtype": self.dtype_policy}
        self.lstms = [
            keras.layers.Bidirectional(
                keras.layers.LSTM(lstm_units, return_sequences=True, name="lstm", **policy),
                name=f"lstm_{index}",
                **policy,
            )
            for index in range(2)
        ]
        self.classifier = Linear(
            num_classes,
            initializer_range=encoder.config.initializer_range,
            name="classifier",
            **policy,
        )
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights of the LSTMs and of the classifier."""
        hidden, units = self.encoder.config.output_size, self.head["lstm_units"]
        width = 4 * hidden if self.features == "concat_last_four" else hidden
        self.lstms[0].build((None, None, width))
        self.lstms[1].build((None, None, 2 * units))
        self.classifier.build((None, 2 * units))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """See the class."""
        encoded = self.encoder.encode(inputs, training=False)
        rows = encoded.layout.restore(self._activations(encoded))
        mask = tf.not_equal(inputs["input_mask"], 0)
        for lstm in self.lstms:
            rows = lstm(rows, mask=mask, training=training)
        tokens = encoded.layout.flatten(rows)
        return encoded.layout.restore(tf.cast(self.classifier(tokens), tf.float32))

    def _activations(self, encoded: Encoded) -> tf.Tensor:
        """[tokens, hidden or 4 * hidden]."""
        layers = encoded.layers
        return {
            "embeddings": lambda: encoded.embeddings,
            "second_to_last": lambda: layers[-2],
            "last": lambda: layers[-1],
            "sum_last_four": lambda: tf.add_n(layers[-4:]),
            "concat_last_four": lambda: tf.concat(layers[-4:], axis=-1),
            "sum_all": lambda: tf.add_n(layers),
        }[self.features]()

    def targets(self, y: tf.Tensor) -> dict[str, Targets]:
        """Every label that is not -1 weighs 1."""
        return {"tokens": tag_targets(y)}

    def logits(self, y_pred: tf.Tensor) -> dict[str, tf.Tensor]:
        """What `call` returns."""
        return {"tokens": y_pred}
