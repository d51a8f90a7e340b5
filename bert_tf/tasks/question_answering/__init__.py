"""The part of a context that answers a question."""

from typing import Literal, Self

from pydantic import model_validator

from bert_tf.checkpoints.heads import Head, Place
from bert_tf.config.data import FinetuningData
from bert_tf.config.run import FinetuningRun
from bert_tf.config.section import Count, FilePaths
from bert_tf.tasks.family import TaskFamily


class QuestionAnsweringData(FinetuningData):
    """Questions with contexts that hold their answers: see `bert_tf.tasks.question_answering`."""

    format: str
    """`squad`, the official JSON; `parquet` or `datasets`, with the columns of SQuAD on the Hub; or
    `tfds`. The default names are `train-v1.1.json` and `dev-v1.1.json`; with data.unanswerable,
    those of v2.0.
    """
    unanswerable: bool = False
    """Whether a context may hold no answer (SQuAD 2.0); the model can then give no answer."""
    extra_train: FilePaths | None = None
    """More training files in SQuAD's form, such as those that `python -m
    bert_tf.experiments.trivia_qa` makes of TriviaQA (paper, section 4.2).
    """
    stride: Count = 128
    """A long context is read in windows that start this many pieces apart. The default is that of
    google-research/bert.
    """
    max_question_length: Count = 64
    """Pieces of a question that are kept. The default is that of google-research/bert."""
    n_best: Count = 20
    """How many of the best answers are returned with their probabilities. The default is that of
    google-research/bert.
    """
    max_answer_length: Count = 30
    """Maximum number of pieces of an answer. The default is that of google-research/bert."""
    null_threshold: float | None = None
    """With data.unanswerable: give no answer if the score of "no answer" exceeds that of the best
    answer by more than this. null: the threshold with the best F1 on the dev data.
    """

    @model_validator(mode="after")
    def _threshold_has_a_use(self) -> Self:
        if self.null_threshold is not None and not self.unanswerable:
            raise ValueError(
                "data.null_threshold requires data.unanswerable: true; set that, or remove "
                "data.null_threshold"
            )
        return self


class QuestionAnsweringRun(FinetuningRun):
    """The part of a context that answers a question."""

    task: Literal["question_answering"]
    data: QuestionAnsweringData
    """Questions with contexts that hold their answers."""


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
    outputs=("answer", "start", "end", "score", "null_score", "nbest_answers", "nbest_scores"),
    ids_outputs=(
        *("start", "end", "score", "null_score"),
        *("nbest_starts", "nbest_ends", "nbest_scores"),
        *("start_logits", "end_logits"),
    ),
    lists=(("nbest_answers", "nbest_scores"),),
)
