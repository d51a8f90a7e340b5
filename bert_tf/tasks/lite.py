"""A LiteRT file of a task as an object that answers, with the same methods as the task's model."""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf

from bert_tf.asking import Answers, Outputs, Row, rows_of
from bert_tf.errors import UserError
from bert_tf.export.litert.lite_file import SUFFIX
from bert_tf.tasks.lite_network import LiteNetwork, LiteStrings

_ASSERTION = re.compile(r"assertion failed: \[(.*?)\]")


def is_lite_file(path: str | os.PathLike) -> bool:
    """Whether `path` names a LiteRT file.

    >>> is_lite_file("model.tflite"), is_lite_file("runs/reviews")
    (True, False)
    """
    return Path(path).suffix == SUFFIX


class LiteTask(Answers):
    """A `.tflite` file of a task.

    It answers as the task model that it was exported from does, and cannot be trained.

    >>> from bert_tf import Encoder, EncoderConfig, NextSentence, Tokenizer, load
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] cat".split())
    >>> config = EncoderConfig(6, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    >>> model = NextSentence(Encoder(config), tokenizer, max_length=8)
    >>> model.export("model.tflite", format="litert")
    >>> file = load("model.tflite")
    >>> type(file).__name__
    'LiteTask'
    >>> bool(abs(file.predict(("cat", "cat")) - model.predict(("cat", "cat"))) < 1e-5)
    True

    Args:
        path: the file, for messages.
        model: a model of the task, without weights, that computes what the network computes.
        network: runs the file.

    Attributes:
        model, network: as above.
    """

    def __init__(self, path: str, model: Any, network: LiteNetwork | LiteStrings):
        self.path, self.model, self.network = path, model, network

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Answers in Python values; see `predict` of the task model."""
        with self._explained():
            return self.model.predict(*args, **kwargs)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """The official metrics on strings; see `evaluate` of the task model."""
        with self._explained():
            return self.model.evaluate(*args, **kwargs)

    def serve(self, inputs: Any = None, **named: Any) -> dict[str, tf.Tensor]:
        """String tensors in, a dict of tensors out; see `TaskModel.serve`."""
        ranks = self.ranks("serving_default")
        given = named or (inputs if isinstance(inputs, Mapping) else {next(iter(ranks)): inputs})
        columns = [np.asarray(given[name]).tolist() for name in ranks]
        outputs = self.ask("serving_default", rows_of(columns, tuple(ranks)))
        return {name: tf.constant(value) for name, value in outputs.items()}

    def similarity(self, *args: Any, **kwargs: Any) -> np.ndarray:
        """How alike texts or vectors are; see `TextEmbedder.similarity`.

        Raises:
            UserError: as there, or the model gives no vectors.
        """
        if not hasattr(self.model, "similarity"):
            raise UserError(
                f"{self.path} returns no vectors; similarity requires the export of a TextEmbedder"
            )
        return self.model.similarity(*args, **kwargs)

    def ranks(self, signature: str) -> dict[str, int]:
        return self.model.ranks(signature)

    def signature_names(self) -> tuple[str, ...]:
        return self.model.signature_names()

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        with self._explained():
            return self.model.ask(signature, rows)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Raises UserError for inputs that the file cannot take."""
        try:
            yield
        except tf.errors.InvalidArgumentError as error:
            found = _ASSERTION.search(str(error))
            if found is None:
                raise
            raise UserError(f"{self.path}: {found[1]}") from None

    def _only_answers(self, *_: Any, **__: Any) -> NoReturn:
        """Raises UserError: a LiteRT file only answers."""
        raise UserError(
            f"{self.path} is a LiteRT file, which can only predict; load the run or the "
            "checkpoint that it was exported from"
        )

    fit = compile = save = save_checkpoint = export = _only_answers
