"""A SavedModel of a task as an object that answers, with the same methods as the task's model."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import tensorflow as tf

from bert_tf.asking.saved_model import SavedModel
from bert_tf.errors import UserError
from bert_tf.tasks import inputs
from bert_tf.tasks.classification.model import TextClassifier
from bert_tf.tasks.multiple_choice.model import MultipleChoice
from bert_tf.tasks.question_answering.model import QuestionAnswerer
from bert_tf.tasks.regression.model import TextRegressor
from bert_tf.tasks.token_classification.model import TokenClassifier

# The folders of an export of kind hub.
_PAIR = ("preprocessor", "encoder")
_DEFAULT = "serving_default"


def check_no_pair(path: str | os.PathLike) -> None:
    """Raises UserError where there is an export for TF Hub at `path`, which gives no answers."""
    if all(os.path.isdir(Path(path) / name) for name in _PAIR):
        raise UserError(
            f"{path} is a pair for TF Hub, which gives no answers; load its preprocessor and its "
            "encoder with hub.load, or export another kind"
        )


class ServedTask(SavedModel):
    """A SavedModel that takes strings.

    It answers as the task model that it was exported from does, and cannot be trained.
    """

    def serve(self, inputs: Any = None, **named: Any) -> dict[str, tf.Tensor]:
        """The signature `serving_default`; see `TaskModel.serve`."""
        return self._loaded.serve(named or inputs)

    def predict(
        self,
        x: Any = None,
        other: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        **named: Any,
    ) -> Any:
        """Answers in Python values, as `predict` of the task model gives them.

        Args:
            x: the inputs; see `predict` of the task model.
            other: contexts of questions, or choices of contexts.
            batch_size: rows of a batch (32).
            verbose: 0 shows no progress.
            **named: the inputs by their names.

        Raises:
            UserError: the inputs are not what the model takes, or it is of no task.
        """
        outputs = set(self._loaded.signatures[_DEFAULT].structured_outputs)
        names = tuple(self.ranks(_DEFAULT))
        how: dict[str, Any] = {"batch_size": batch_size, "verbose": verbose}
        if isinstance(x, tf.data.Dataset):
            x, _ = inputs.from_dataset(x, None, "x")
        if "words" in named:
            return TokenClassifier.answer_words(self, named["words"], **how)
        if "labels" in outputs and "words" in outputs:
            return TokenClassifier.answer_texts(self, x, **how)
        if "nbest_answers" in outputs:
            x = _in_order(x, other, named, QuestionAnswerer.input_names)
            return QuestionAnswerer.answer_questions(self, x, **how)
        if "choice" in outputs:
            x = _in_order(x, other, named, MultipleChoice.input_names)
            return MultipleChoice.answer_choices(self, x, **how)
        if "label" in outputs:
            return TextClassifier.answer_texts(self, named or x, names, **how)
        if outputs == {"score"}:
            return TextRegressor.answer_texts(self, named or x, names, **how)
        raise UserError(
            f"{self.path} gives {', '.join(sorted(outputs))}, which are no answers of a task; use "
            "serve"
        )

    def fit(self, *_: Any, **__: Any) -> NoReturn:
        """Raises UserError: a SavedModel cannot be trained."""
        raise UserError(
            f"{self.path} is a SavedModel, which cannot be trained; load the run or the checkpoint "
            "that it was exported from"
        )

    def _only_answers(self, *_: Any, **__: Any) -> NoReturn:
        """Raises UserError: a SavedModel only answers."""
        raise UserError(
            f"{self.path} is a SavedModel, which only answers; load the run or the checkpoint that "
            "it was exported from"
        )

    evaluate = compile = save = save_checkpoint = export = _only_answers


def _in_order(x: Any, other: Any, named: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Two columns as a tuple, however they were given."""
    first, second = (named.get(name) for name in names)
    if first is None:
        first = x
    second = other if second is None else second
    return first if second is None else (first, second)
