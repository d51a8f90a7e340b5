"""Star ratings: a task family that is not part of bert_tf.

A review has from one to five stars. The stars have an order, which a classifier does not know: a
model learns for each number whether a review has at least so many (Cao et al. 2020, CORAL).
"""

from typing import Annotated, Literal

from pydantic import Field

from bert_tf import FinetuningData, FinetuningRun, Head, Place, TaskFamily


class StarRatingData(FinetuningData):
    """Reviews with stars, one a line: `*** the soup was cold`."""

    most_stars: Annotated[int, Field(ge=1)] = 5
    """The most stars that a review can have."""


class StarRatingRun(FinetuningRun):
    """How many stars a review gives."""

    task: Literal["star_rating"]
    data: StarRatingData


FAMILY = TaskFamily(
    name="star_rating",
    title="Star rating",
    model="star_ratings.model:StarRater",
    pictures="star_ratings.pictures:StarPictures",
    config=StarRatingRun,
    task="star_ratings.run:StarRating",
    metrics=("mean_absolute_error", "accuracy"),
    outputs=("stars", "at_least"),
    head=Head(
        layer="ordinal", places={"huggingface": Place("ordinal.", "BertForStarRating")}, pools=True
    ),
)
