"""The tasks of runs in the tiny language: their models, and what these learn from."""

from bert_tf.data.batching import TrainingRows
from bert_tf.encoder.encoder import Encoder
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_model import TaskModel
from tests import tiny


def model_of(task: Task) -> TaskModel:
    """The model of a task whose labels are known, with new weights."""
    return task.model(
        Encoder(tiny.encoder_config(num_hidden_layers=1)),
        tiny.tokenizer(),
    )


def examples_of(task: Task) -> TrainingRows:
    """What a run of the task learns from."""
    rows = task.training_rows()
    return model_of(task).examples(rows)
