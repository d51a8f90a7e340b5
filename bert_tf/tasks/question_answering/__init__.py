"""The part of a context that answers a question."""

from bert_tf.checkpoints.heads import Head, Place
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
    head=Head(
        layer="span",
        places={
            "huggingface": Place("qa_outputs.", "BertForQuestionAnswering"),
            "tf1": Place("cls/squad/", "run_squad.py"),
            "model_garden": Place(
                "span_labeling/logits/", "BertSpanLabeler", "span_labeling/layer_with_weights-0"
            ),
        },
        arguments=("dropout",),
    ),
)
