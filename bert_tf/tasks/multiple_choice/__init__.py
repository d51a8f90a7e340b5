"""Which of several continuations fits."""

from typing import Literal

from bert_tf.checkpoints.heads import Head, Place
from bert_tf.config.data import FinetuningData
from bert_tf.config.run import CalibratedRun
from bert_tf.tasks.family import TaskFamily


class MultipleChoiceData(FinetuningData):
    """Contexts with several endings: see `bert_tf.tasks.multiple_choice`."""

    format: str
    """`swag`, the official CSV; `codah`, its TSV; or `jsonl`, `parquet` or `datasets` with
    `context`, `choices` (or `endings`) and `label`. The default names are `train.csv` and `val.csv`
    for SWAG, `train.tsv` and `dev.tsv` for CODAH, and `train.jsonl` and `dev.jsonl`; and `test`
    with the same ending.
    """


class MultipleChoiceRun(CalibratedRun):
    """Which of several endings fits."""

    task: Literal["multiple_choice"]
    data: MultipleChoiceData
    """Contexts with several endings, one of which fits."""


FAMILY = TaskFamily(
    name="multiple_choice",
    title="Multiple choice",
    model="bert_tf.tasks.multiple_choice.model:MultipleChoice",
    pictures="bert_tf.tasks.multiple_choice.pictures:ChoicePictures",
    config=MultipleChoiceRun,
    task="bert_tf.tasks.multiple_choice.run:MultipleChoiceTask",
    metrics=("accuracy",),
    head=Head(
        layer="choice",
        places={
            "huggingface": Place("classifier.", "BertForMultipleChoice"),
            # google-research has no such task; repositories built on it use this name.
            "tf1": Place(""),
        },
        arguments=("dropout",),
        pools=True,
    ),
    outputs=("choice", "probabilities"),
    lists=(("probabilities",),),
)
