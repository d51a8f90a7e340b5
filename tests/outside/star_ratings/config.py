"""What a run of star ratings may configure."""

import dataclasses
from typing import Literal

from bert_tf.config import FinetuningData, FinetuningRun
from bert_tf.config.kinds import Count


@dataclasses.dataclass(frozen=True)
class StarRatingData(FinetuningData):
    """Reviews with stars, one a line: `*** the soup was cold`."""

    # The most stars that a review can have.
    most_stars: Count = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class StarRatingRun(FinetuningRun):
    """How many stars a review gives."""

    task: Literal["star_rating"]
    data: StarRatingData
