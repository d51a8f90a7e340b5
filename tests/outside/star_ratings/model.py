"""How many stars a review gives."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf import Columns, Encoder, Target, TaskModel, TextColumn, Tokenizer, UserError


class Stars(Target):
    """A number of stars, learned as a decision for each step: 1 where a review has more."""

    what = plural = "stars"

    def __init__(self, most_stars: int):
        self.most_stars = most_stars

    def checked(self, rows: Columns) -> list[int]:
        for row, stars in enumerate(rows.known_targets()):
            if stars not in range(1, self.most_stars + 1):
                place = rows.at(row, self.what)
                raise UserError(f"{place} is {stars!r}, not from 1 to {self.most_stars}")
        return list(rows.known_targets())

    def numbers(self, rows: Columns) -> np.ndarray:
        return self.encoded(rows.known_targets()).numpy()

    def encoded(self, y: Any) -> tf.Tensor:
        return tf.cast(tf.range(1, self.most_stars) < tf.cast(y, tf.int32)[:, None], tf.float32)


@keras.saving.register_keras_serializable("star_ratings")
class OrdinalHead(keras.layers.Layer):
    """One score for a text, and a bias for each step from one star to the next."""

    def __init__(self, steps: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.steps = steps

    def build(self, input_shape: tuple) -> None:
        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], 1))
        self.bias = self.add_weight(name="bias", shape=(self.steps,), initializer="zeros")

    def call(self, vectors: tf.Tensor) -> tf.Tensor:
        """[batch, hidden] -> float32 [batch, steps]."""
        score = tf.matmul(vectors, tf.cast(self.kernel, vectors.dtype))
        return tf.cast(score, tf.float32) + self.bias


@keras.saving.register_keras_serializable("star_ratings")
class StarRater(TaskModel):
    """Predicts how many stars a review gives; called with ids, returns float32 [batch, steps]."""

    columns = (TextColumn("review"),)
    predicts = "labels"

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        most_stars: int = 5,
        max_length: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(encoder, tokenizer, {"most_stars": most_stars}, max_length, **kwargs)
        self.most_stars = most_stars
        self.ordinal = OrdinalHead(most_stars - 1, name="ordinal", dtype=self.dtype_policy)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        self.ordinal.build((None, self.encoder.config.output_size))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        return self.ordinal(self.encoder.pooled(inputs, training=training))

    @property
    def target(self) -> Stars:
        return Stars(self.most_stars)

    def decode(self, scores: tf.Tensor) -> dict[str, tf.Tensor]:
        """`stars` int32 [batch], `at_least` float32 [batch, steps]: more stars than 1, 2, …"""
        stars = 1 + tf.reduce_sum(tf.cast(scores > 0, tf.int32), axis=1)
        return {"stars": stars, "at_least": tf.sigmoid(scores)}

    @staticmethod
    def answer(outputs: Mapping[str, np.ndarray], place: int, row: Any) -> int:
        return int(outputs["stars"][place])

    def official_metrics(self, predictions: np.ndarray, rows: Columns) -> dict[str, float]:
        """`accuracy` and `mean_absolute_error`, in stars."""
        error = np.abs(1 + (predictions > 0).sum(axis=1) - np.array(rows.targets))
        return {"accuracy": float((error == 0).mean()), "mean_absolute_error": float(error.mean())}
