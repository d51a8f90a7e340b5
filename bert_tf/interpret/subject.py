"""What is inspected: a run of a task, or an encoder."""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import native
from bert_tf.config.run import FinetuningRun, RunConfig
from bert_tf.console import logger
from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.interpret.importance import Importances, Inputs, blanked, importances
from bert_tf.interpret.looks import MOST_TOKENS, Explanation, attention_maps, shown_places
from bert_tf.io.remote import fetched
from bert_tf.runs.run_folder import CONFIG_FILE, RunFolder
from bert_tf.runs.scoring import trained
from bert_tf.tasks import from_checkpoint, loading, registry
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_model import TaskModel
from bert_tf.text import Tokenizer


@dataclasses.dataclass(frozen=True)
class Subject:
    """A model with all that belongs to it.

    It computes in float32, in whatever precision it was trained, because pages show small
    differences.

    Attributes:
        path: as the user named it.
        run: its folder; None where it is no run.
        task: reads the data of its run; None where it is no run of a task.
        model: a task model, or the encoder.
        encoder: the encoder in it.
        tokenizer: its tokenizer.
        most_tokens: the most tokens of an input whose attention is computed.
    """

    path: str
    run: RunFolder[RunConfig] | None
    task: Task | None
    model: TaskModel | Encoder
    encoder: Encoder
    tokenizer: Tokenizer
    most_tokens: int = MOST_TOKENS

    def __post_init__(self) -> None:
        if getattr(self.model, "long_text", "") == "windows":
            raise UserError(
                f"{self.path} reads windows, and a page shows one input of the encoder; load the "
                "model with long_text='truncate', and save it to another file"
            )

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Subject":
        """The model at `path`, as `bert_tf.load` opens it, or the encoder of another checkpoint.

        Raises:
            UserError: there is no such model, it is damaged, or it reads windows.
        """
        # Path.is_file raises an error for a name that is too long; the reader explains it.
        is_run = os.path.isfile(fetched(path, without=native.CHECKPOINTS) / CONFIG_FILE)
        run = RunFolder.open(path) if is_run else None
        if run is not None and isinstance(run.config, FinetuningRun):
            task, model = trained(run, "float32")
            return cls(str(path), run, task, model, model.encoder, model.tokenizer)
        checkpoint = from_checkpoint.find(path)
        if from_checkpoint.family_at(checkpoint) is not None:
            model = loading.load_model(path, dtype="float32")
            return cls(str(path), run, None, model, model.encoder, model.tokenizer)
        tokenizer, encoder = Tokenizer.from_checkpoint(checkpoint), encoder_for(checkpoint.encoder)
        logger.info(f"{path}: {checkpoint.fill(encoder)}")
        return cls(str(path), run, None, encoder, encoder, tokenizer)

    @property
    def family(self) -> TaskFamily | None:
        """The family of the model; None for a bare encoder."""
        return registry.family_of_class(type(self.model))

    @property
    def max_length(self) -> int:
        """Most tokens of an input."""
        return getattr(self.model, "max_length", self.encoder.config.max_position_embeddings)

    def explain(
        self, outputs: Sequence[str], inputs: Inputs, score: Callable[[Inputs], tf.Tensor]
    ) -> list[Importances]:
        """What the tokens of `inputs` add to some outputs; see `importances`."""
        tokenizer = self.tokenizer
        blank = blanked(inputs, tokenizer.mask_id, (tokenizer.cls_id, tokenizer.sep_id))
        return importances(outputs, self.encoder, inputs, blank, score)

    def read_back(self, inputs: Mapping[str, np.ndarray]) -> str:
        """The text of one input [1, tokens], as the tokenizer has left it."""
        text = self.tokenizer.detokenize(inputs["input_word_ids"][0, 1:-1])
        return text.numpy().decode("utf-8", "replace")

    def dev_path(self) -> Path:
        """The dev data of a task; of several files the first."""
        return next(iter(self._task_of_run.files("dev").values()))

    def read_dev(self) -> Any:
        """The rows of the dev data.

        Raises:
            UserError: they cannot be read.
        """
        return self._task_of_run.read(self.dev_path())

    @property
    def _task_of_run(self) -> Task:
        if self.task is None:
            raise UserError(f"{self.path} is not a fine-tuning run, so it has no dev data")
        return self.task

    def seen(
        self, title: str, inputs: Inputs, explained: Sequence[Importances] = (), focus: int = 0
    ) -> Explanation:
        """What can be seen of one input of the encoder.

        Args:
            title: the name of the input, if a text has several.
            inputs: each int32 [1, tokens], without padding.
            explained: what its tokens add to outputs.
            focus: the place around which tokens are shown, if there are too many for the page.
        """
        ids = inputs["input_word_ids"].numpy()[0]
        tokens = tuple(self.tokenizer.vocabulary[number] for number in ids)
        places = shown_places(inputs["input_type_ids"].numpy()[0], focus, self.most_tokens)
        maps = attention_maps(self.encoder, inputs, places)
        return Explanation(title, tokens, maps, tuple(explained))


def without_padding(features: Inputs, row: int) -> dict[str, tf.Tensor]:
    """One row of packed inputs [rows, seq_len]: each [1, tokens]."""
    length = int(np.count_nonzero(features["input_mask"][row]))
    return {name: values[row : row + 1, :length] for name, values in features.items()}
