"""Star ratings: a task family that is not part of bert_tf.

A review has from one to five stars. The stars have an order, which a classifier does not know: a
model learns for each number whether a review has at least so many (Cao et al. 2020, CORAL).
"""

import bert_tf
from bert_tf.checkpoints.heads import Head, Place
from star_ratings.config import StarRatingRun

FAMILY = bert_tf.TaskFamily(
    name="star_rating",
    title="Star rating",
    model="star_ratings.model:StarRater",
    pictures="star_ratings.pictures:StarPictures",
    config=StarRatingRun,
    task="star_ratings.run:StarRating",
    metrics=("mean_absolute_error", "accuracy"),
    head=Head(
        layer="ordinal",
        places={"huggingface": Place("ordinal.", "BertForStarRating")},
        pools=True,
    ),
)
