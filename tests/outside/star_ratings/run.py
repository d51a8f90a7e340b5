"""Runs of star ratings."""

from pathlib import Path

import numpy as np

from bert_tf import Columns, Encoder, Tokenizer
from bert_tf.io.atomic import write_text
from bert_tf.tasks.task import Task
from star_ratings.config import StarRatingData
from star_ratings.model import StarRater
from star_ratings.reviews import read_reviews


class StarRating(Task):
    """Reads reviews for a `StarRater`."""

    best_metric = "accuracy"
    formats = ("stars",)
    data: StarRatingData

    def training_rows(self) -> Columns:
        """See `Task`."""
        self.check_format()
        (path,) = self.files("train").values()
        return self.read(path)

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> StarRater:
        """See `Task`."""
        return StarRater(
            encoder, tokenizer, self.data.most_stars, max_length=self.config.train.max_length
        )

    def read(self, path: Path) -> Columns:
        """See `Task`."""
        return read_reviews(path, self.data.most_stars)

    def write_predictions(
        self, model: StarRater, predictions: np.ndarray, rows: Columns, folder: Path, name: str
    ) -> None:
        """Writes the reviews with the stars that are predicted."""
        stars = 1 + (predictions > 0).sum(axis=1)
        lines = (
            f"{'*' * n} {text}\n" for n, text in zip(stars, rows.column("review"), strict=True)
        )
        write_text(folder / f"{name}.stars", "".join(lines))
