"""Runs of star ratings, and their files."""

from pathlib import Path

import numpy as np

from bert_tf import Columns, Encoder, Task, Tokenizer, UserError
from bert_tf.io.atomic import write_text
from star_ratings import StarRatingData
from star_ratings.model import StarRater, Stars


class StarRating(Task):
    """Reads reviews for a `StarRater`, one a line behind its stars; without stars none has any."""

    best_metric = "accuracy"
    formats = ("stars",)
    data: StarRatingData

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> StarRater:
        return StarRater(encoder, tokenizer, self.data.most_stars, self.config.train.max_length)

    def read(self, path: Path) -> Columns:
        texts, stars, most = [], [], self.data.most_stars
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            texts.append(line.lstrip("*").strip())
            stars.append(len(line) - len(line.lstrip("*")))
            if not texts[-1] or stars[-1] > most:
                raise UserError(f"{path}, line {number}: write up to {most} stars and a review")
        rows = Columns(("review",), (texts,), stars if all(stars) else None, str(path), path=path)
        return rows.checked(StarRater.columns, Stars(most))

    def write_predictions(
        self, model: StarRater, predictions: np.ndarray, rows: Columns, folder: Path, name: str
    ) -> None:
        """Writes the reviews with the stars that are predicted."""
        pairs = zip(1 + (predictions > 0).sum(axis=1), rows.column("review"), strict=True)
        write_text(folder / f"{name}.stars", "".join(f"{'*' * n} {text}\n" for n, text in pairs))
