"""What a run of multiple choice may configure."""

from typing import Literal

from bert_tf.config.data import FinetuningData
from bert_tf.config.run import FinetuningRun


class MultipleChoiceData(FinetuningData):
    """Contexts with several endings: see `bert_tf.tasks.multiple_choice`."""

    format: str
    """`swag`, the official CSV; `codah`, its TSV; or `jsonl`, objects with `context`, `choices` (or
    `endings`) and `label`. The default names are `train.csv` and `val.csv` for SWAG, `train.tsv`
    and `dev.tsv` for CODAH, and `train.jsonl` and `dev.jsonl`; and `test` with the same ending.
    """


class MultipleChoiceRun(FinetuningRun):
    """Which of several endings fits."""

    task: Literal["multiple_choice"]
    data: MultipleChoiceData
    """Contexts with several endings, one of which fits."""
