"""Task families: reading, preprocessing, model, loss and metrics of each in one object."""

from bert_tf.tasks.classification import Classification
from bert_tf.tasks.multiple_choice import MultipleChoiceTask
from bert_tf.tasks.question_answering import QuestionAnswering
from bert_tf.tasks.regression import Regression
from bert_tf.tasks.task import Task as Task
from bert_tf.tasks.token_classification import TokenClassification

TASKS: dict[str, type[Task]] = {
    "classification": Classification,
    "regression": Regression,
    "multiple_choice": MultipleChoiceTask,
    "question_answering": QuestionAnswering,
    "token_classification": TokenClassification,
}
