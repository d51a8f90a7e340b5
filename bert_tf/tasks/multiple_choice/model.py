"""Which of several continuations fits (SWAG; paper, section 4.4)."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Outputs, Row
from bert_tf.config.arguments import checked
from bert_tf.data.columns import Columns
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.service import Tensors
from bert_tf.io.json_files import as_json
from bert_tf.models.logits import PADDING_SCORE
from bert_tf.tasks.multiple_choice.data import COLUMNS, ChoiceNumber, same_number
from bert_tf.tasks.texts.groups import GroupModel, alike_where_equal
from bert_tf.tasks.texts.metrics import accuracy_and_loss
from bert_tf.text import Tokenizer


@keras.saving.register_keras_serializable("bert_tf")
class MultipleChoice(GroupModel):
    """Finds which of several choices continues a context.

    `MultipleChoice.from_checkpoint("google-bert/bert-base-uncased")` starts from pre-trained
    weights. Here the encoder is tiny and has random weights:

    >>> from bert_tf import EncoderConfig
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] she pours tea snow".split())
    >>> config = EncoderConfig(9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = MultipleChoice(Encoder(config), tokenizer)
    >>> (answer,) = model.predict(["She pours"], [["tea", "snow"]])
    >>> answer["choice"] in (0, 1), [round(each, 1) for each in answer["probabilities"]]
    (True, [0.5, 0.5])

    `fit` takes (contexts, choices) with the number of the right choice, counted from 0. `predict`
    returns dicts: `choice`, and the `probabilities` of all choices. The first of equal choices is
    chosen. One vector scores the pooled output of each choice, packed with its context. Called with
    the encoder's inputs, each [batch, choices, seq_len], the model returns float32 logits
    [batch, choices]. A choice whose mask is all 0 has a logit so low that its probability is 0.

    Args:
        encoder, tokenizer: what reads the texts.
        max_length: the maximum number of tokens of a context with a choice (128).
        dropout: rate on the pooled output; None takes the encoder's.
        temperature: as for a `TextClassifier`.
        abstain: likewise; the choice is then None, and -1 in `serve` and in exports.
    """

    columns = COLUMNS
    target = ChoiceNumber()
    predicts = "classes"
    calibrates = True
    answer_options = ("abstain",)
    # The bias of this head moves all choices alike; it exists because checkpoints have one.
    head_name = "choice"

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        max_length: int | None = None,
        dropout: float | None = None,
        temperature: float = 1.0,
        abstain: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(encoder, tokenizer, max_length, dropout, **kwargs)
        self.temperature, self.abstain = temperature, abstain

    def given(self, *args: Any, **kwargs: Any) -> Columns:
        return same_number(super().given(*args, **kwargs))

    def infer(self, rows: Columns, *args: Any, **kwargs: Any) -> np.ndarray:
        return self.calibrated(np.stack(super().infer(rows, *args, **kwargs)))

    def official_metrics(self, predictions: np.ndarray, rows: Columns) -> dict[str, float]:
        return accuracy_and_loss(predictions, self.target.numbers(rows))

    def decode(self, scores: tf.Tensor) -> Tensors:
        """`choice` int32 [batch], the first of equal choices, -1 if there is none; `probabilities`
        float32 [batch, choices], the same for equal choices, 0 for a choice "", which is padding.
        """
        is_there = scores > PADDING_SCORE
        scores = tf.where(is_there, self.calibrated(scores), -float("inf"))
        probabilities = alike_where_equal(tf.nn.softmax(scores), scores)
        # One more column, so that argmax is defined without choices.
        padded = tf.pad(scores, [[0, 0], [0, 1]], constant_values=-float("inf"))
        best = tf.argmax(padded, axis=1, output_type=tf.int32)
        return {
            "choice": tf.where(tf.reduce_any(is_there, axis=1), best, -1),
            "probabilities": tf.where(is_there, probabilities, 0.0),
        }

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> dict[str, Any]:
        size, choice = len(row["choices"]), as_json(outputs["choice"][place])
        return {
            "choice": choice if choice >= 0 else None,
            "probabilities": as_json(outputs["probabilities"][place][:size]),
        }
