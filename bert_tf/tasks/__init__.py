"""The tasks of BERT, each as one object: from strings to answers, trained, saved and exported."""

from bert_tf.tasks.classification.model import TextClassifier
from bert_tf.tasks.classification.run import Classification
from bert_tf.tasks.loading import load
from bert_tf.tasks.multiple_choice.model import MultipleChoice
from bert_tf.tasks.multiple_choice.run import MultipleChoiceTask
from bert_tf.tasks.question_answering.model import QuestionAnswerer
from bert_tf.tasks.question_answering.run import QuestionAnswering
from bert_tf.tasks.regression.model import TextRegressor
from bert_tf.tasks.regression.run import Regression
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_model import TaskModel
from bert_tf.tasks.token_classification.model import TokenClassifier
from bert_tf.tasks.token_classification.run import TokenClassification

__all__ = [
    "TASKS",
    "MultipleChoice",
    "QuestionAnswerer",
    "Task",
    "TaskModel",
    "TextClassifier",
    "TextRegressor",
    "TokenClassifier",
    "load",
]

# The tasks of runs by their names in configurations.
TASKS: dict[str, type[Task]] = {
    "classification": Classification,
    "regression": Regression,
    "multiple_choice": MultipleChoiceTask,
    "question_answering": QuestionAnswering,
    "token_classification": TokenClassification,
}
