"""Which of several continuations fits (SWAG; paper, section 4.4)."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Answers, Text, each_answer, plain, rows_of
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.service import Signature, Tensors
from bert_tf.io.json_values import as_json
from bert_tf.models.padding import hide_padding
from bert_tf.tasks import inputs
from bert_tf.tasks.classification.metrics import classification_metrics
from bert_tf.tasks.inputs import Given
from bert_tf.tasks.interface import Network
from bert_tf.tasks.multiple_choice.data import Choices
from bert_tf.tasks.task_model import TaskModel, losses_of_classes
from bert_tf.tasks.texts.model import EncodedTexts
from bert_tf.text import GroupPreprocessor, Tokenizer
from bert_tf.text.parts import map_in_chunks

_EXAMPLE = {
    "context": ["The kettle whistles."],
    "choices": [["She pours the tea.", "She waters the roof.", "It begins to snow upwards."]],
}
_SPECS = {
    "context": tf.TensorSpec([None], tf.string, "context"),
    "choices": tf.TensorSpec([None, None], tf.string, "choices"),
}


@dataclasses.dataclass(frozen=True)
class EncodedChoices(EncodedTexts):
    """Contexts with choices, ready for the model.

    >>> from bert_tf.data.batching import EncodedRows
    >>> encoded = EncodedRows(np.array([2, 5, 3, 2, 3]), np.zeros(5, int), np.array([0, 3, 5]))
    >>> rows = EncodedChoices(encoded, np.array([1]), choices=2)
    >>> inputs, labels = rows.take(np.array([0]))
    >>> inputs["input_word_ids"].tolist(), labels.tolist()
    ([[[2, 5, 3], [2, 3, 0]]], [1])

    Attributes:
        encoded: the packed pairs of context and choice, those of a row one after the other.
        targets, weights: as of `EncodedTexts`.
        choices: how many a row has.
    """

    choices: int = dataclasses.field(kw_only=True)

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]: tokens of each row's longest choice."""
        return self.encoded.lengths.reshape(-1, self.choices).max(axis=1)

    def inputs(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The inputs of all choices, [batch, choices, seq_len]."""
        pairs = rows[:, None] * self.choices + np.arange(self.choices)
        return {
            name: values.reshape(len(rows), self.choices, -1)
            for name, values in self.encoded.take(pairs.ravel()).items()
        }


@keras.saving.register_keras_serializable("bert_tf")
class MultipleChoice(TaskModel):
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

    `fit` takes (contexts, choices) with the number of the right choice, counted from 0. One vector
    scores the pooled output of each choice, packed with its context. Called with the encoder's
    inputs, each [batch, choices, seq_len], the model returns float32 logits [batch, choices]. A
    choice whose mask is all 0 has a logit so low that its probability is 0.

    Args:
        encoder: the encoder.
        tokenizer: its tokenizer.
        max_length: most tokens of a context with a choice; longer ones are cut (128).
        dropout: rate on the pooled output; None takes the encoder's.
    """

    input_names = ("context", "choices")
    answer_names = ("choice", "probabilities")

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        max_length: int | None = None,
        dropout: float | None = None,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "multiple_choice")
        super().__init__(encoder, tokenizer, {"dropout": dropout}, max_length, **kwargs)
        if tokenizer is not None:
            self.preprocessor()
        self.dropout = self.make_dropout(dropout)
        # The bias moves all choices alike; it is there because published checkpoints have one.
        self.choice = self.make_linear(1, "choice")
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
            name: tf.reshape(value, tf.concat([[shape[0] * shape[1]], tf.shape(value)[2:]], axis=0))
            for name, value in inputs.items()
        }
        pooled = self.encoder.pooled(rows, training=training)
        pooled = self.dropout(pooled, training=training)
        scores = tf.reshape(tf.cast(self.choice(pooled), tf.float32), shape[:2])
        return hide_padding(scores, tf.reduce_max(inputs["input_mask"], axis=2))

    def own_losses(self) -> dict[str, Any]:
        """Cross-entropy over the choices, and the accuracy."""
        return losses_of_classes()

    def rows(self, given: Given) -> list[Choices]:
        """See `TaskModel`."""
        contexts, lists = _checked(given.columns)
        labels = [None] * len(contexts) if given.targets is None else given.targets
        for row, (choices, label) in enumerate(zip(lists, labels, strict=True)):
            is_number = isinstance(label, int | np.integer) and not isinstance(label, bool)
            if label is not None and not (is_number and 0 <= label < len(choices)):
                raise UserError(
                    f"label {row} is {label!r}; it must be the number of one of the {len(choices)} "
                    "choices, counted from 0"
                )
            if len(choices) != len(lists[0]):
                raise UserError(
                    f"choices {row} are {len(choices)}, but those of row 0 are {len(lists[0])}; "
                    "train on rows of as many choices"
                )
        return [
            Choices(plain(context), tuple(map(plain, choices)), label)
            for context, choices, label in zip(contexts, lists, labels, strict=True)
        ]

    def learn_from(self, rows: Sequence[Choices]) -> None:
        """See `TaskModel`; there is nothing to decide."""

    def examples(
        self,
        rows: Sequence[Choices],
        weights: np.ndarray | None = None,
        class_weight: Mapping[int, float] | None = None,
    ) -> EncodedChoices:
        """See `TaskModel`."""
        number = len(rows[0].choices)
        contexts = [row.context for row in rows for _ in range(number)]
        choices = [choice for row in rows for choice in row.choices]
        labels = np.array([row.label for row in rows], np.int32)
        encoded = self.encoded((contexts, choices))
        return EncodedChoices(encoded, labels, weights, choices=number)

    def encode(self, x: Any, y: Any, weights: Any = None) -> tuple:
        """See `TaskModel`."""
        if isinstance(x, Mapping):
            x = tuple(x[name] for name in self.input_names)
        shape = tf.shape(x[1])
        features = {
            name: tf.reshape(each, [shape[0], shape[1], tf.shape(each)[1]])
            for name, each in self.preprocessor()(_pairs(*x)).items()
        }
        return keras.utils.pack_x_y_sample_weight(features, tf.cast(y, tf.int32), weights)

    def infer(
        self, rows: Sequence[Choices], batch_size: int | None = None, verbose: int | str = "auto"
    ) -> np.ndarray:
        """float32 [rows, choices]: the scores of every row's choices."""
        asked = [{"context": row.context, "choices": row.choices} for row in rows]
        scores = each_answer(
            self, "scores", asked, lambda outputs, i, _: outputs["scores"][i], batch_size, verbose
        )
        return np.stack(scores)

    def official_metrics(
        self, predictions: np.ndarray, rows: Sequence[Choices]
    ) -> dict[str, float]:
        """`accuracy` and `loss`, the mean cross-entropy."""
        if rows[0].label is None:
            return {}
        labels = np.array([row.label for row in rows], np.int32)
        metrics = classification_metrics(predictions, labels)
        return {name: metrics[name] for name in ("accuracy", "loss")}

    def inner_signatures(self) -> dict[str, Signature]:
        """See `TaskModel`."""
        return {
            "scores": Signature(
                _SPECS, lambda given: {"scores": self._scores(given, self)}, _EXAMPLE
            )
        }

    def signatures(self, network: Network | None = None) -> dict[str, Signature]:
        """See `TaskModel`."""
        network = network or self
        answer = Signature(_SPECS, lambda given: self._answer(given, network), _EXAMPLE)
        return {"serving_default": answer}

    def _scores(self, given: Mapping[str, tf.Tensor], network: Network) -> tf.Tensor:
        """float32 [batch, choices]: the score of each choice, that of padding included."""
        preprocess = GroupPreprocessor(self.tokenizer, self.max_length)
        features = preprocess([*_pairs(given["context"], given["choices"])])

        def score(rows: Mapping[str, tf.Tensor]) -> tf.Tensor:
            # A choice's score does not depend on the others: each can be a row by itself.
            return network({name: values[:, tf.newaxis, :] for name, values in rows.items()})

        return tf.reshape(map_in_chunks(score, features), tf.shape(given["choices"]))

    def _answer(self, given: Mapping[str, tf.Tensor], network: Network) -> Tensors:
        """`choice` int32 [batch], -1 where there is none, and `probabilities` float32
        [batch, choices], 0 for a choice "", which is padding.
        """
        is_choice = given["choices"] != ""
        scores = tf.where(is_choice, self._scores(given, network), -float("inf"))
        probabilities = tf.where(is_choice, tf.nn.softmax(scores), 0.0)
        # One more column, so that there is something to choose from.
        best = tf.argmax(tf.pad(probabilities, [[0, 0], [0, 1]]), axis=1, output_type=tf.int32)
        return {
            "choice": tf.where(tf.reduce_any(is_choice, axis=1), best, -1),
            "probabilities": probabilities,
        }

    # The second column follows the first, where Keras has `batch_size`.
    def predict(  # type: ignore[override]
        self,
        x: Any = None,
        choices: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """The best of the choices of each context; on ids, Keras's `predict`.

        Args:
            x: contexts, or a tuple of contexts and choices; one string gives one answer.
            choices: a list of choices for each context.
            batch_size: rows of a batch (32).
            verbose: 0 shows no progress.
            steps: as in Keras, for ids.
            callbacks: as in Keras, for ids.

        Returns:
            A list of dicts: `choice`, counted from 0, and the `probabilities` of all choices.

        Raises:
            UserError: something is not a string, or a context has fewer than two choices.
        """
        x = x if choices is None else (x, choices)
        return super().predict(x, batch_size, verbose, steps, callbacks)

    @classmethod
    def answers(
        cls, model: Answers, x: Any, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> Any:
        """See `TaskModel`."""
        if isinstance(x, Mapping):
            x = tuple(x[name] for name in cls.input_names if name in x)
        single = isinstance(x, tuple) and len(x) == 2 and inputs.is_text(x[0])
        if single:
            x = tuple([each] for each in x)
        contexts, lists = _checked(inputs.columns_of(x, cls.input_names))
        answers = each_answer(
            model,
            "serving_default",
            rows_of((contexts, lists), cls.input_names),
            lambda outputs, place, row: {
                "choice": as_json(outputs["choice"][place]),
                "probabilities": as_json(outputs["probabilities"][place][: len(lists[row])]),
            },
            batch_size,
            verbose,
        )
        return answers[0] if single else answers


def _checked(columns: Sequence[Sequence]) -> tuple[list[Text], list[list[Text]]]:
    """Contexts and their choices. Raises UserError if a choice is empty or has no other."""
    contexts = inputs.texts_of(columns[0], "context")
    lists = inputs.lists_of_texts(columns[1], "choices")
    for row, choices in enumerate(lists):
        if len(choices) < 2:
            raise UserError(f"choices {row} has {len(choices)}; there must be two or more")
        for number, choice in enumerate(choices):
            if not choice.strip():
                raise UserError(f"choices {row}: choice {number} is empty")
    return contexts, lists


def _pairs(contexts: tf.Tensor, choices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Each choice [batch, choices] with its context [batch], both flat."""
    contexts = tf.repeat(contexts, tf.shape(choices)[1])
    return contexts, tf.reshape(choices, [-1])
