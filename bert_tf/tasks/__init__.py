"""Task families: reading, preprocessing, model, loss and metrics of each in one object."""

from bert_tf.tasks.classification import Classification
from bert_tf.tasks.task import Task as Task

TASKS: dict[str, type[Task]] = {"classification": Classification}
