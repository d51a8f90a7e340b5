"""The part of a context that answers a question."""

from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.question_answering.config import QuestionAnsweringRun

FAMILY = TaskFamily(
    name="question_answering",
    title="Question answering",
    model="bert_tf.tasks.question_answering.model:QuestionAnswerer",
    pictures="bert_tf.tasks.question_answering.pictures:QuestionPictures",
    config=QuestionAnsweringRun,
    task="bert_tf.tasks.question_answering.run:QuestionAnswering",
    metrics=("f1", "exact_match"),
    in_percent=True,
)
