"""A SavedModel of a task as an object that answers, with the same methods as the task's model."""

import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf

from bert_tf.asking.saved_model import SavedModel
from bert_tf.errors import UserError
from bert_tf.tasks import inputs, registry

# The folders of an export of kind hub.
_PAIR = ("preprocessor", "encoder")


def check_no_pair(path: str | os.PathLike) -> None:
    """Raises UserError if there is an export for TF Hub at `path`, which gives no answers."""
    if all(os.path.isdir(Path(path) / name) for name in _PAIR):
        raise UserError(
            f"{path} holds a preprocessor and an encoder for TF Hub, which cannot predict; load "
            "each with hub.load, or export another kind"
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
            other: contexts of questions, choices of contexts, or passages of queries.
            batch_size: rows of a batch (32).
            verbose: 0 shows no progress.
            **named: the inputs by their names, and options as `predict` of the task model has
                them.

        Raises:
            UserError: the model does not take such inputs, or is of no task.
        """
        cls = self._model_class()
        options = {name: named.pop(name) for name in cls.answer_options if name in named}
        if isinstance(x, tf.data.Dataset):
            x, _ = inputs.from_dataset(x, None, "x")
        # The second column may also follow by its name: predict(questions, context=contexts).
        columns = [each for each in (x, other, *named.values()) if each is not None]
        if x is None:
            x = named
        elif len(columns) > 1:
            x = tuple(columns)
        return cls.answers(self, x, batch_size, verbose, **options)

    def similarity(
        self, a: Any, b: Any, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> np.ndarray:
        """How alike texts or vectors are; see `TextEmbedder.similarity`.

        Raises:
            UserError: as there, or the model gives no vectors.
        """
        compare, cls = getattr(self._loaded, "similarity", None), self._model_class()
        if compare is None:
            raise UserError(
                f"{self.path} returns no vectors; similarity requires the export of a TextEmbedder"
            )
        return cls.compared(self, compare, a, b, batch_size, verbose)

    def _model_class(self) -> Any:
        """The class of the task model that was exported."""
        outputs = set(self._loaded.signatures["serving_default"].structured_outputs)
        for family in registry.families():
            cls = family.model_class()
            if outputs == set(cls.answer_names):
                return cls
        raise UserError(
            f"{self.path} returns {', '.join(sorted(outputs))}, which are not the outputs of a "
            "task; use serve"
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
            f"{self.path} is a SavedModel, which can only predict; load the run or the checkpoint "
            "that it was exported from"
        )

    evaluate = compile = save = save_checkpoint = export = _only_answers
