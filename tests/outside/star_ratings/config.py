"""What a run of star ratings may configure."""

from typing import Literal

from bert_tf.config.data import FinetuningData
from bert_tf.config.run import FinetuningRun
from bert_tf.config.section import Count


class StarRatingData(FinetuningData):
    """Reviews with stars, one a line: `*** the soup was cold`."""

    most_stars: Count = 5
    """The most stars that a review can have."""


class StarRatingRun(FinetuningRun):
    """How many stars a review gives."""

    task: Literal["star_rating"]
    data: StarRatingData
