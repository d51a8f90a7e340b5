"""A number for a text or a pair of texts, such as the similarity of two sentences (STS-B)."""

from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Outputs, Row
from bert_tf.config.arguments import checked
from bert_tf.data.columns import Columns, Target
from bert_tf.data.targets import Number
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.litert.form import DeviceForm, of_scores
from bert_tf.export.service import Tensors
from bert_tf.io.json_files import as_json
from bert_tf.tasks import long_texts
from bert_tf.tasks.task_model import TaskModel
from bert_tf.tasks.texts.metrics import regression_metrics
from bert_tf.text import Tokenizer


@keras.saving.register_keras_serializable("bert_tf")
class TextRegressor(TaskModel):
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
        encoder, tokenizer: what reads the texts.
        pair: whether a row is two texts; None lets the first `fit` decide.
        max_length: the maximum number of tokens of a row, special ones included (128).
        dropout: rate on the pooled output; None takes the encoder's.
        targets: names of several numbers to predict; the model is then a `MultiTargetRegressor`.
        long_text, window_pooling, stride, max_windows: as for `TextClassifier`.
    """

    predicts = "values"
    setting_names: ClassVar[tuple[str, ...]] = ("pair", "max_length")

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        targets: Sequence[str] | None = None,
        pair: bool | None = None,
        max_length: int | None = None,
        dropout: float | None = None,
        long_text: str = "truncate",
        window_pooling: str | None = None,
        stride: int | None = None,
        max_windows: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(encoder, tokenizer, {"dropout": dropout}, max_length, **kwargs)
        self.pair = pair
        long_texts.set_up(self, long_text, window_pooling, stride, max_windows)
        self.make_head(self.outputs_of_head, "classifier", dropout)

    def outputs_of(self, vectors: tf.Tensor, training: bool = False) -> tf.Tensor:
        return tf.squeeze(super().outputs_of(vectors, training=training), -1)

    @property
    def outputs_of_head(self) -> int:
        return 1

    @property
    def target(self) -> Target:
        return Number()

    def device_form(self) -> DeviceForm:
        return of_scores(self)

    def decode(self, scores: tf.Tensor) -> Tensors:
        return {"score": scores}

    def official_metrics(self, predictions: np.ndarray, rows: Columns) -> dict[str, float]:
        return regression_metrics(predictions, self.target.numbers(rows))

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> Any:
        return as_json(outputs["score"][place])
