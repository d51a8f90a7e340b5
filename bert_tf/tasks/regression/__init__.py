"""A number for a text, or for a pair of texts."""

import dataclasses
from typing import Literal

from bert_tf.tasks import classification
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.texts import TextData, TextRun


class RegressionRun(TextRun):
    """A number for a text or a pair of texts."""

    task: Literal["regression"]
    data: TextData
    """One text, or a pair of texts, with a number."""


FAMILY = TaskFamily(
    name="regression",
    title="Regression",
    model="bert_tf.tasks.regression.model:TextRegressor",
    pictures="bert_tf.tasks.regression.pictures:RegressionPictures",
    config=RegressionRun,
    task="bert_tf.tasks.regression.run:Regression",
    metrics=("spearman", "pearson"),
    head=dataclasses.replace(
        classification.HEAD,
        arguments=("dropout",),
        outputs=1,
        problem="regression",
        takes=("Reranker",),
    ),
    outputs=("score",),
    variants={"targets": "multi_target_regression"},
)
