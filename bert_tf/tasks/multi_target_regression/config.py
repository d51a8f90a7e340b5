"""What a run of multi-target regression may configure."""

from typing import Literal

from bert_tf.config.run import FinetuningRun
from bert_tf.config.section import Names
from bert_tf.tasks.texts.config import TextData


class MultiTargetData(TextData):
    """One text or two with several numbers: see `bert_tf.tasks.multi_target_regression`."""

    format: str
    """`tsv`, `csv` or `jsonl`, with named columns."""
    label_columns: Names
    """Columns of the numbers, whose names are those of the targets."""


class MultiTargetRegressionRun(FinetuningRun):
    """Several numbers for a text or a pair of texts."""

    task: Literal["multi_target_regression"]
    data: MultiTargetData
    """One text, or a pair of texts, with several numbers."""
