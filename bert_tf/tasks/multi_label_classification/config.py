"""What a run of multi-label classification may configure."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bert_tf.config.kinds import Names, Share
from bert_tf.config.run import FinetuningRun
from bert_tf.tasks.texts.config import TextData


class MultiLabelData(TextData):
    """One text or two with any number of labels: see `bert_tf.tasks.multi_label_classification`.

    Formats: tsv, csv and jsonl, with named columns. The labels of a row are a list in JSON lines,
    and in tables one text that joins them, or a column of 0 and 1 for each label.
    """

    label_columns: Names | None = None
    """Columns of 0 and 1, whose names are the labels; null reads `label_column`."""
    label_separator: Annotated[str, Field(min_length=1)] = ","
    """What joins the labels in one column of a table."""
    thresholds: Annotated[dict[str, Share], Field(min_length=1)] | None = None
    """Least probabilities with which a label is given; null: for each label the one with the best
    F1 on the dev data. Labels that are not named have 0.5.
    """

    @model_validator(mode="after")
    def _one_way_of_labels(self) -> Self:
        if self.label_columns is not None and not self.is_default("label_column"):
            raise ValueError(
                "data.label_column and data.label_columns exclude each other; keep one"
            )
        return self


class MultiLabelRun(FinetuningRun):
    """Any number of labels for a text or a pair of texts."""

    task: Literal["multi_label_classification"]
    data: MultiLabelData
