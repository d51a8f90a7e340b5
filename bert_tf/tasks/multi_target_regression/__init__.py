"""Several numbers for a text, or for a pair of texts."""

import dataclasses
from typing import Literal

from bert_tf.config.section import Names
from bert_tf.tasks import classification
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.texts import TextData, TextRun


class MultiTargetData(TextData):
    """One text or two with several numbers: see `bert_tf.tasks.multi_target_regression`."""

    format: str
    """`tsv`, `csv`, `jsonl`, `parquet` or `datasets`, with named columns."""
    label_columns: Names
    """Columns of the numbers; their names are the names of the targets."""


class MultiTargetRegressionRun(TextRun):
    """Several numbers for a text or a pair of texts."""

    task: Literal["multi_target_regression"]
    data: MultiTargetData
    """One text, or a pair of texts, with several numbers."""


FAMILY = TaskFamily(
    name="multi_target_regression",
    title="Multi-target regression",
    model="bert_tf.tasks.multi_target_regression.model:MultiTargetRegressor",
    pictures="bert_tf.tasks.regression.pictures:MultiTargetPictures",
    config=MultiTargetRegressionRun,
    task="bert_tf.tasks.multi_target_regression.run:MultiTargetRegression",
    metrics=("spearman", "pearson"),
    head=dataclasses.replace(classification.HEAD, problem="regression"),
    outputs=("scores", "targets"),
)
