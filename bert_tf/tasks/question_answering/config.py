"""What a run of question answering may configure."""

from typing import Literal, Self

from pydantic import model_validator

from bert_tf.config.data import FinetuningData
from bert_tf.config.kinds import Count, FilePaths
from bert_tf.config.run import FinetuningRun


class QuestionAnsweringData(FinetuningData):
    """Questions with contexts that hold their answers: see `bert_tf.tasks.question_answering`.

    Formats: squad, the official JSON, and tfds. Without names the files are train-v1.1.json and
    dev-v1.1.json, or those of v2.0 where questions may be `unanswerable`.
    """

    unanswerable: bool = False
    """Some contexts hold no answer, and the model may say so (SQuAD 2.0)."""
    extra_train: FilePaths | None = None
    """More training files in SQuAD's form, such as TriviaQA's (paper, section 4.2)."""
    stride: Count = 128
    """A long context is cut into windows that start so many pieces apart (the reference's)."""
    max_question_length: Count = 64
    """Pieces to keep of a question (the reference's)."""
    n_best: Count = 20
    """How many of the best answers are returned with their probabilities (the reference's)."""
    max_answer_length: Count = 30
    """Most pieces of an answer (the reference's)."""
    null_threshold: float | None = None
    """Answer nothing where the score of no answer is more than this above that of the best answer;
    null: what gives the best F1 on the dev data.
    """

    @model_validator(mode="after")
    def _threshold_has_a_use(self) -> Self:
        if self.null_threshold is not None and not self.unanswerable:
            raise ValueError(
                "data.null_threshold is for data.unanswerable true; set that, or remove "
                "data.null_threshold"
            )
        return self


class QuestionAnsweringRun(FinetuningRun):
    """The part of a context that answers a question."""

    task: Literal["question_answering"]
    data: QuestionAnsweringData
