"""What a run of star ratings may configure."""

from typing import Literal

from bert_tf.config import FinetuningData, FinetuningRun
from bert_tf.config.kinds import Count


class StarRatingData(FinetuningData):
    """Reviews with stars, one a line: `*** the soup was cold`."""

    most_stars: Count = 5
    """The most stars that a review can have."""


class StarRatingRun(FinetuningRun):
    """How many stars a review gives."""

    task: Literal["star_rating"]
    data: StarRatingData
