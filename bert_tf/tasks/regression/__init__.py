"""A number for a text, or for a pair of texts."""

from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.regression.config import RegressionRun

FAMILY = TaskFamily(
    name="regression",
    title="Regression",
    model="bert_tf.tasks.regression.model:TextRegressor",
    pictures="bert_tf.tasks.regression.pictures:RegressionPictures",
    config=RegressionRun,
    task="bert_tf.tasks.regression.run:Regression",
    metrics=("spearman", "pearson"),
)
