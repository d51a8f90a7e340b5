"""Any number of labels for a text, or for a pair of texts."""

import dataclasses
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bert_tf.config.section import Names, Share
from bert_tf.tasks import classification
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.texts import TextData


class MultiLabelData(TextData):
    """One text or two with any number of labels: see `bert_tf.tasks.multi_label_classification`."""

    format: str
    """`tsv`, `csv`, `jsonl`, `parquet` or `datasets`, with named columns. The labels of a row are a
    list in the last three. In tables they are joined in one column, or each label has a column of 0
    and 1.
    """
    label_columns: Names | None = None
    """Columns of 0 and 1, whose names are the labels; null reads label_column."""
    label_separator: Annotated[str, Field(min_length=1)] = ","
    """The separator of the labels in one column of a table."""
    thresholds: Annotated[dict[str, Share], Field(min_length=1)] | None = None
    """Minimum probability at which a label is given, such as `{toxic: 0.3}`. Labels that are not
    named have 0.5. null: for each label, the threshold with the best F1 on the dev data.
    """

    @model_validator(mode="after")
    def _one_way_of_labels(self) -> Self:
        if self.label_columns is not None and not self.is_default("label_column"):
            raise ValueError(
                "data.label_column and data.label_columns cannot both be set; remove one"
            )
        return self


class MultiLabelRun(classification.LabelRun):
    """Any number of labels for a text or a pair of texts."""

    task: Literal["multi_label_classification"]
    data: MultiLabelData
    """One text, or a pair of texts, with any number of labels."""


FAMILY = TaskFamily(
    name="multi_label_classification",
    title="Multi-label classification",
    model="bert_tf.tasks.multi_label_classification.model:MultiLabelClassifier",
    pictures="bert_tf.tasks.multi_label_classification.pictures:MultiLabelPictures",
    config=MultiLabelRun,
    task="bert_tf.tasks.multi_label_classification.run:MultiLabelClassification",
    metrics=("micro_f1", "macro_f1", "map", "lrap"),
    head=dataclasses.replace(
        classification.HEAD, problem="multi_label_classification", takes=("TextClassifier",)
    ),
    outputs=("labels", "probabilities", "classes"),
    lists=(("labels",),),
)
