"""What a run of multiple choice may configure."""

from typing import Literal

from bert_tf.config.data import FinetuningData
from bert_tf.config.run import FinetuningRun


class MultipleChoiceData(FinetuningData):
    """Contexts with several endings: see `bert_tf.tasks.multiple_choice`.

    Formats: swag, the official CSV; codah, its TSV; jsonl, objects with context, choices (or
    endings) and label. Without names the files are train.csv and val.csv of SWAG, train.tsv and
    dev.tsv of CODAH, train.jsonl and dev.jsonl, and test with the same ending if it is there.
    """


class MultipleChoiceRun(FinetuningRun):
    """Which of several endings fits."""

    task: Literal["multiple_choice"]
    data: MultipleChoiceData
