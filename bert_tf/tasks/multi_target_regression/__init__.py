"""Several numbers for a text, or for a pair of texts."""

import dataclasses

from bert_tf.tasks import classification
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.multi_target_regression.config import MultiTargetRegressionRun

FAMILY = TaskFamily(
    name="multi_target_regression",
    title="Multi-target regression",
    model="bert_tf.tasks.multi_target_regression.model:MultiTargetRegressor",
    pictures="bert_tf.tasks.multi_target_regression.pictures:MultiTargetPictures",
    config=MultiTargetRegressionRun,
    task="bert_tf.tasks.multi_target_regression.run:MultiTargetRegression",
    metrics=("spearman", "pearson"),
    head=dataclasses.replace(classification.HEAD, problem="regression"),
)
