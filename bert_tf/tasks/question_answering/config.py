"""What a run of question answering may configure."""

import dataclasses
from typing import Literal

from bert_tf.config.data import FinetuningData
from bert_tf.config.kinds import Count, FilePath
from bert_tf.config.run import FinetuningRun
from bert_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class QuestionAnsweringData(FinetuningData):
    """Questions with contexts that hold their answers: see `bert_tf.tasks.question_answering`.

    Formats: squad, the official JSON, and tfds. Without names the files are train-v1.1.json and
    dev-v1.1.json, or those of v2.0 where questions may be `unanswerable`.
    """

    # Some contexts hold no answer, and the model may say so (SQuAD 2.0).
    unanswerable: bool = False
    # More training files in SQuAD's form, such as TriviaQA's (paper, section 4.2).
    extra_train: tuple[FilePath, ...] | None = None
    # A long context is cut into windows that start so many pieces apart (the reference's).
    stride: Count = 128
    # Pieces to keep of a question (the reference's).
    max_question_length: Count = 64
    # How many of the best answers are returned with their probabilities, and most pieces of an
    # answer (the reference's).
    n_best: Count = 20
    max_answer_length: Count = 30
    # Answer nothing where the score of no answer is more than this above that of the best answer;
    # null: what gives the best F1 on the dev data.
    null_threshold: float | None = None

    def __post_init__(self) -> None:
        if self.null_threshold is not None and not self.unanswerable:
            raise UserError(
                "data.null_threshold is for data.unanswerable true; set that, or remove "
                "data.null_threshold"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionAnsweringRun(FinetuningRun):
    """The part of a context that answers a question."""

    task: Literal["question_answering"]
    data: QuestionAnsweringData
