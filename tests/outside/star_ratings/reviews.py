"""The files of star ratings, and what is learned of a review."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import Columns, Target, UserError


class Stars(Target):
    """A number of stars, learned as a decision for each step: 1 where a review has more."""

    what, plural = "stars", "stars"

    def __init__(self, most_stars: int):
        self.most_stars = most_stars

    def checked(self, rows: Columns) -> list[int]:
        """See `Target`."""
        for row, stars in enumerate(rows.known_targets()):
            if stars not in range(1, self.most_stars + 1):
                raise UserError(
                    f"{rows.at(row, self.what)} is {stars!r}, not from 1 to {self.most_stars}"
                )
        return list(rows.known_targets())

    def numbers(self, rows: Columns) -> np.ndarray:
        """float32 [rows, steps]."""
        return self.encoded(rows.known_targets()).numpy()

    def encoded(self, y: Any) -> tf.Tensor:
        """float32 [batch, steps]."""
        return tf.cast(tf.range(1, self.most_stars) < tf.cast(y, tf.int32)[:, None], tf.float32)


def read_reviews(path: Path, most_stars: int) -> Columns:
    """The reviews of a file, one a line behind its stars; without stars none may have any."""
    texts, stars = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        texts.append(line.lstrip("*").strip())
        stars.append(len(line) - len(line.lstrip("*")))
        if not texts[-1] or stars[-1] > most_stars:
            raise UserError(f"{path}, line {number}: write up to {most_stars} stars and a review")
    return Columns(("review",), (texts,), stars if all(stars) else None, str(path), path=path)
