"""How many stars a review gives."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf import Encoder, Preprocessor, Tokenizer, UserError
from bert_tf.asking import Answers, Outputs, batches, each_answer
from bert_tf.data.batching import EncodedRows, TrainingRows
from bert_tf.export.service import Signature, Tensors, strings
from bert_tf.tasks import inputs
from bert_tf.tasks.inputs import Given
from bert_tf.tasks.task_model import TaskModel
from bert_tf.text.parts import map_in_chunks
from star_ratings.reviews import Reviews

_EXAMPLE = {"review": ["The soup was cold."]}


@keras.saving.register_keras_serializable("star_ratings")
class OrdinalHead(keras.layers.Layer):
    """One score for a text, and a bias for each step from one star to the next."""

    def __init__(self, steps: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.steps = steps

    def build(self, input_shape: tuple) -> None:
        """Creates the weights."""
        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], 1))
        self.bias = self.add_weight(name="bias", shape=(self.steps,), initializer="zeros")

    def call(self, vectors: tf.Tensor) -> tf.Tensor:
        """[batch, hidden] -> float32 [batch, steps]."""
        score = tf.matmul(vectors, tf.cast(self.kernel, vectors.dtype))
        return tf.cast(score, tf.float32) + self.bias


@dataclasses.dataclass(frozen=True)
class EncodedReviews(TrainingRows):
    """Reviews ready for the model; targets are float32 [rows, steps]."""

    targets: np.ndarray

    def take(self, rows: np.ndarray) -> tuple:
        """The encoder's inputs and the targets of some rows."""
        return self.encoded.take(rows), self.targets[rows]


@keras.saving.register_keras_serializable("star_ratings")
class StarRater(TaskModel):
    """Predicts how many stars a review gives; called with ids, returns float32 [batch, steps]."""

    input_names = ("review",)
    answer_names = ("stars", "at_least")

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        most_stars: int = 5,
        max_length: int | None = None,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "star_rater")
        head = {"most_stars": most_stars}
        super().__init__(encoder, tokenizer, head, max_length=max_length, **kwargs)
        self.most_stars = most_stars
        self.ordinal = OrdinalHead(most_stars - 1, name="ordinal", dtype=self.dtype_policy)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the head's weights."""
        self.ordinal.build((None, self.encoder.config.output_size))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """See the class."""
        return self.ordinal(self.encoder.pooled(inputs, training=training))

    def own_losses(self) -> dict[str, Any]:
        """Binary cross-entropy of each step."""
        return {"loss": keras.losses.BinaryCrossentropy(from_logits=True)}

    def rows(self, given: Given) -> Reviews:
        """See `TaskModel`."""
        texts = inputs.texts_of(given.columns[0], "review")
        for row, stars in enumerate(given.targets or ()):
            if stars not in range(1, self.most_stars + 1):
                raise UserError(f"label {row} is {stars!r}, not from 1 to {self.most_stars}")
        return Reviews(texts, given.targets)

    def learn_from(self, rows: Reviews) -> None:
        """See `TaskModel`; there is nothing to decide."""

    def steps(self, stars: Any) -> tf.Tensor:
        """Numbers of stars [batch] -> float32 [batch, steps]: 1 where there are more."""
        return tf.cast(tf.range(1, self.most_stars) < tf.cast(stars, tf.int32)[:, None], tf.float32)

    def examples(
        self, rows: Reviews, weights: Any = None, class_weight: Any = None
    ) -> EncodedReviews:
        """See `TaskModel`."""
        packed = iter([self.preprocessor()(tf.constant(rows.texts))])
        return EncodedReviews(EncodedRows.gather(packed), self.steps(rows.stars).numpy())

    def encode(self, x: Any, y: Any, weights: Any = None) -> tuple:
        """See `TaskModel`."""
        return self.preprocessor()(x), self.steps(y)

    def infer(
        self, rows: Reviews, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> np.ndarray:
        """float32 [rows, steps]: probabilities of more stars than 1, 2, …"""
        found = np.zeros((len(rows), self.most_stars - 1), np.float32)
        asked = [{"review": text} for text in rows.texts]
        for chosen, outputs in batches(self, "serving_default", asked, batch_size, verbose):
            found[chosen] = outputs["at_least"]
        return found

    def official_metrics(self, predictions: np.ndarray, rows: Reviews) -> dict[str, float]:
        """`accuracy` and `mean_absolute_error`, in stars."""
        if rows.stars is None:
            return {}
        error = np.abs(1 + (predictions > 0.5).sum(axis=1) - np.array(rows.stars))
        return {
            "accuracy": float((error == 0).mean()),
            "mean_absolute_error": float(error.mean()),
        }

    def signatures(self) -> dict[str, Signature]:
        """`review` -> `stars` int32 [batch], `at_least` float32 [batch, steps]."""
        preprocess = Preprocessor(self.tokenizer, self.max_length, padding="batch")

        def answer(given: Mapping[str, tf.Tensor]) -> Tensors:
            at_least = tf.sigmoid(map_in_chunks(self.network(), preprocess(given["review"])))
            stars = 1 + tf.reduce_sum(tf.cast(at_least > 0.5, tf.int32), axis=1)
            return {"stars": stars, "at_least": at_least}

        return {"serving_default": Signature(strings("review"), answer, _EXAMPLE)}

    @classmethod
    def answers(
        cls, model: Answers, x: Any, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> Any:
        """See `TaskModel`; numbers of stars."""
        x, single = inputs.as_batch(x)
        (column,) = inputs.columns_of(x, cls.input_names)
        rows = [{"review": text} for text in inputs.texts_of(column, "review")]

        def answer(outputs: Outputs, place: int, _: int) -> int:
            return int(outputs["stars"][place])

        answers = each_answer(model, "serving_default", rows, answer, batch_size, verbose)
        return answers[0] if single else answers
