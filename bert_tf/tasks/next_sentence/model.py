"""Whether a text follows another one: next sentence prediction (paper, section 3.1)."""

import dataclasses
import numbers
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Outputs, Row
from bert_tf.config.arguments import checked
from bert_tf.data.columns import Columns, Target, quoted
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, of_scores
from bert_tf.export.service import Tensors
from bert_tf.io.json_files import as_json
from bert_tf.tasks.task_model import PAIR, TaskModel
from bert_tf.tasks.texts.metrics import accuracy_and_loss
from bert_tf.text import Tokenizer


@dataclasses.dataclass(frozen=True)
class Follows(Target):
    """Whether the second text follows the first. Class 0 means that it does, as in pre-training."""

    def checked_one(self, rows: Columns, row: int, value: Any) -> bool:
        if not isinstance(value, numbers.Real | np.bool_) or value not in (0, 1):
            raise UserError(
                f"{rows.at(row, self.what)} is {quoted(value)}; it must be True where the "
                "second text follows the first, else False"
            )
        return bool(value)

    def numbers(self, rows: Columns) -> np.ndarray:
        return np.array([not each for each in rows.known_targets()], np.int32)

    def encoded(self, y: tf.Tensor) -> tf.Tensor:
        """int32 [batch]: booleans, or 1 and 0, to classes."""
        return 1 - tf.cast(y, tf.int32)


@keras.saving.register_keras_serializable("bert_tf")
class NextSentence(TaskModel):
    """Predicts whether the second of two texts follows the first.

    `NextSentence.from_checkpoint("google-bert/bert-base-uncased")` starts from pre-trained weights.
    Here the encoder is tiny and has random weights:

    >>> from bert_tf import EncoderConfig
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] she opened the door .".split())
    >>> config = EncoderConfig(10, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = NextSentence(Encoder(config), tokenizer)
    >>> round(model.predict(("She opened the door.", "The door.")), 1)  # a probability
    0.5

    `fit` takes (texts_a, texts_b) with booleans. Called with the encoder's inputs, the model
    returns float32 logits [batch, 2]; class 0 means that the second text follows.

    Args:
        encoder, tokenizer: what reads the texts.
        max_length: the maximum number of tokens of a pair; None is as many as the encoder has
            positions. Longer pairs are cut.
        dropout: rate on the pooled output; pre-training has none.
    """

    columns = PAIR
    target = Follows()
    predicts = "classes"
    default_max_length = None

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        max_length: int | None = None,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "next_sentence_predictor")
        super().__init__(encoder, tokenizer, {"dropout": dropout}, max_length, **kwargs)
        self.make_head(2, "next_sentence", dropout)

    def decode(self, scores: tf.Tensor) -> Tensors:
        """`is_next` float32 [batch], the probability that the second text follows the first."""
        return {"is_next": tf.nn.softmax(scores)[:, 0]}

    def device_form(self) -> DeviceForm:
        return of_scores(self, 2)

    def official_metrics(self, predictions: np.ndarray, rows: Columns) -> dict[str, float]:
        return accuracy_and_loss(predictions, self.target.numbers(rows))

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> float:
        return as_json(outputs["is_next"][place])
