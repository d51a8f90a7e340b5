"""The files of star ratings."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from bert_tf import UserError


@dataclasses.dataclass(frozen=True)
class Reviews:
    """Reviews with their stars, or None where they are not known."""

    texts: Sequence[str]
    stars: Sequence[int] | None

    def __len__(self) -> int:
        return len(self.texts)


def read_reviews(path: Path, most_stars: int) -> Reviews:
    """The reviews of a file, one a line behind its stars; without stars none may have any."""
    texts, stars = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.lstrip("*").strip()
        stars.append(len(line) - len(line.lstrip("*")))
        if not text or stars[-1] > most_stars:
            raise UserError(f"{path}, line {number}: write up to {most_stars} stars and a review")
        texts.append(text)
    return Reviews(texts, stars if all(stars) else None)
