"""Which of several continuations fits."""

from bert_tf.checkpoints.heads import Head, Place
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.multiple_choice.config import MultipleChoiceRun

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
)
