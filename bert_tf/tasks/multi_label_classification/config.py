"""What a run of multi-label classification may configure."""

import dataclasses
from typing import Literal

from bert_tf.config.kinds import Share
from bert_tf.config.run import FinetuningRun
from bert_tf.errors import UserError
from bert_tf.tasks.texts.config import TextData


@dataclasses.dataclass(frozen=True)
class MultiLabelData(TextData):
    """One text or two with any number of labels: see `bert_tf.tasks.multi_label_classification`.

    Formats: tsv, csv and jsonl, with named columns. The labels of a row are a list in JSON lines,
    and in tables one text that joins them, or a column of 0 and 1 for each label.
    """

    # Columns of 0 and 1, whose names are the labels; null reads `label_column`.
    label_columns: tuple[str, ...] | None = None
    # What joins the labels in one column of a table.
    label_separator: str = ","
    # Least probabilities with which a label is given; null: for each label the one with the best F1
    # on the dev data. Labels that are not named have 0.5.
    thresholds: dict[str, Share] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.label_columns is not None and self.label_column != TextData.label_column:
            raise UserError("data.label_column and data.label_columns exclude each other; keep one")
        if not self.label_separator:
            raise UserError("data.label_separator is empty; name what joins the labels")


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiLabelRun(FinetuningRun):
    """Any number of labels for a text or a pair of texts."""

    task: Literal["multi_label_classification"]
    data: MultiLabelData
