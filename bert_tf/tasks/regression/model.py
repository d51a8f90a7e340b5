"""A number for a text or a pair of texts, such as the likeness of two sentences (STS-B)."""

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Outputs
from bert_tf.config.arguments import checked
from bert_tf.distillation.losses import Matched
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, output
from bert_tf.export.service import Tensors
from bert_tf.io.json_files import as_json
from bert_tf.tasks.regression.metrics import regression_metrics
from bert_tf.tasks.texts.labelled_texts import LabelledTexts
from bert_tf.tasks.texts.model import TextModel
from bert_tf.text import Tokenizer


@keras.saving.register_keras_serializable("bert_tf")
class TextRegressor(TextModel):
    """Predicts a number for a text, or for a pair of texts.

    `TextRegressor.from_checkpoint("google-bert/bert-base-uncased")` starts from pre-trained
    weights. Here the encoder is tiny and has random weights:

    >>> from bert_tf import EncoderConfig
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] he sleeps".split())
    >>> config = EncoderConfig(7, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = TextRegressor(Encoder(config), tokenizer, pair=True)
    >>> numbers = model.predict((["He sleeps", "He"], ["He", "Sleeps"]))
    >>> len(numbers), [round(abs(each)) for each in numbers]  # untrained: about 0
    (2, [0, 0])

    `fit` takes texts, or (texts_a, texts_b), with numbers. Called with the encoder's inputs, the
    model returns float32 [batch].

    Args:
        encoder: the encoder.
        tokenizer: its tokenizer.
        pair: whether a row is two texts; None lets the first `fit` decide.
        max_length: most tokens of a row, special ones included; longer texts are cut (128).
        dropout: rate on the pooled output; None takes the encoder's.
    """

    answer_names = ("score",)

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        pair: bool | None = None,
        max_length: int | None = None,
        dropout: float | None = None,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "text_regressor")
        super().__init__(encoder, tokenizer, 1, {}, pair, max_length, dropout, **kwargs)

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """Maps the encoder's inputs to float32 [batch]."""
        return tf.squeeze(super().call(inputs, training=training), -1)

    def own_losses(self) -> dict[str, Any]:
        """The mean squared error."""
        return {"loss": keras.losses.MeanSquaredError()}

    def matched(self, outputs: tf.Tensor, y: Any) -> Sequence[Matched]:
        return [Matched("values", outputs[:, tf.newaxis])]

    def any_label(self) -> str:
        return "0"

    def labels_of(self, targets: list) -> tuple[list[str], tuple[str, ...]]:
        # Numbers as text, as files have them.
        for row, value in enumerate(targets):
            if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
                raise UserError(f"label {row} is {value!r}; give a number")
        return [repr(float(value)) for value in targets], ()

    def targets(self, rows: LabelledTexts) -> np.ndarray:
        """float32 [rows]."""
        return rows.numbers()

    def encode_targets(self, y: tf.Tensor) -> tf.Tensor:
        """float32 [batch]."""
        return tf.cast(y, tf.float32)

    def device_form(self) -> DeviceForm:
        """`score` float32 [1]."""
        return DeviceForm(
            {"score": output()},
            lambda features: {"score": self.network()(features)},
            lambda outputs, _: outputs["score"],
        )

    def decode(self, logits: tf.Tensor) -> Tensors:
        """`score` float32 [batch]."""
        return {"score": logits}

    def official_metrics(self, predictions: np.ndarray, rows: LabelledTexts) -> dict[str, float]:
        if rows.labels is None:
            return {}
        return regression_metrics(predictions, self.targets(rows))

    @staticmethod
    def answer(outputs: Outputs, place: int) -> float:
        """The number."""
        return as_json(outputs["score"][place])
