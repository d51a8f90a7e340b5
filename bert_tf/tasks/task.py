"""The base of a task's runs: which files are read, and how predictions are written.

`bert_tf.runs.finetuning` uses nothing else of a family.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from bert_tf.config.data import FinetuningData
from bert_tf.config.run import FinetuningRun
from bert_tf.data import arrow
from bert_tf.data.columns import Columns
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.io.remote import is_file, local_path
from bert_tf.retrieval.collection import JUDGEMENTS, TEXTS
from bert_tf.tasks.fitting import official_metrics
from bert_tf.tasks.task_model import TaskModel
from bert_tf.text import Tokenizer


class Task(ABC):
    """Reads the files of one task, and makes its model.

    Args:
        config: the run's configuration.
        labels: names of the classes of a trained model; None finds them in the training data.

    Attributes:
        labels: names of the classes in the order of the logits; () for tasks without classes.
        initial: the head's arguments and the settings of the checkpoint that a run starts from,
            if that checkpoint is a model of the same task; otherwise {}.
    """

    # The metric that decides which of several runs is best (higher is better); `best_metric_of`.
    best_metric: str
    # The weight in the loss of the rows of each class, by the number of the class, once the
    # training rows are known; None gives all rows the same weight.
    class_weight: Mapping[int, float] | None = None
    # The values of `data.format` that `check_format` accepts.
    formats: tuple[str, ...] = ()

    def __init__(self, config: FinetuningRun, labels: Sequence[str] | None = None):
        self.config = config
        self.data: FinetuningData = config.data
        self.labels = tuple(labels or ())
        self.initial: Mapping[str, Any] = {}
        self.best_metric = self.best_metric_of(config)

    def of_trial(self, config: FinetuningRun) -> Self:
        """The task, with its labels, in a trial whose configuration differs only under `train`."""
        task = copy.copy(self)
        task.config = config
        return task

    def check_format(self) -> None:
        """Raises UserError if `data.format` is not one of `formats`."""
        if self.formats and self.data.format not in self.formats:
            raise UserError(
                f"unknown data.format {self.data.format!r}; choose one of {', '.join(self.formats)}"
            )

    @classmethod
    def best_metric_of(cls, config: FinetuningRun) -> str:
        """The metric that decides which of several runs of `config` is best."""
        return cls.best_metric

    def files(self, split: str) -> dict[str, Path]:
        """The files of "train", "dev" or "test", by the suffix of their metrics' names: usually one
        file with the suffix ""; MNLI has several dev and test files.
        """
        self.check_format()
        # In BEIR's folders these are the files of judgements.
        folder = local_path(self.data.path) / (JUDGEMENTS if self.data.format == "beir" else "")
        return {"": folder / (getattr(self.data, split) or self.default_name(split))}

    def default_name(self, split: str) -> str:
        """The name of the file of "train", "dev" or "test" if none is configured."""
        form = self.data.format
        if form in arrow.FORMATS:
            return arrow.default_name(Path(self.data.path), form, split)
        return f"{split}.{form}"

    def train_files(self) -> list[Path]:
        """All files to train on; the file of "train" comes first."""
        return [*self.files("train").values()]

    def sources(self, split: str) -> list[Path]:
        """The sources of the data of "train" or "dev"; by default the files themselves."""
        paths = self.train_files() if split == "train" else [*self.files(split).values()]
        if self.data.format == "beir":
            paths += [local_path(self.data.path) / name for name in TEXTS]
        return [file for path in paths for file in arrow.files_of(path) or [path]]

    def test_files(self) -> dict[str, Path]:
        """The files of "test" to predict for: those configured, or else those that exist."""
        files = self.files("test")
        if self.data.test is not None:
            return files
        is_there = arrow.files_of if self.data.format == "parquet" else is_file
        return {ending: path for ending, path in files.items() if is_there(path)}

    def needs_labels(self, path: Path) -> bool:
        """Whether a file is one to train on or to score."""
        return path in (*self.train_files(), *self.files("dev").values())

    def is_taken(self, name: str) -> bool:
        """Whether predictions of that name are, or may be, those for the run's own data."""
        return name.startswith(("dev", "test"))

    def training_rows(self) -> Columns:
        """The rows to train on; a task with labels finds them if they are not given. Errors name
        the file and the line.
        """
        (path,) = self.files("train").values()
        return self.read(path).first(self.data.train_rows)

    @abstractmethod
    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> TaskModel:
        """The model on top of `encoder`, with the settings of the configuration, not compiled."""

    def check_settings(self, tokenizer: Tokenizer) -> None:
        """Raises UserError before data are read if `model` would raise it because of settings."""
        del tokenizer

    def compile(self, model: TaskModel, **options: Any) -> None:
        """Compiles `model` with the task's loss; `options` (optimizer, …) go to its `compile`."""
        model.compile(**options)

    @abstractmethod
    def read(self, path: Path) -> Any:
        """The rows of one file, to predict and score. Only rows of dev files must have targets. A
        label that training did not have is an error.
        """

    def score(self, model: TaskModel, predictions: Any, rows: Any) -> dict[str, float]:
        """The official metrics of predictions for `rows`."""
        return official_metrics(model, predictions, rows)

    @abstractmethod
    def write_predictions(
        self, model: TaskModel, predictions: Any, rows: Any, folder: Path, name: str
    ) -> None:
        """Writes predictions in the benchmark's own format, as `folder`/`name` with its ending."""


def indexed(predictions: Iterable[object]) -> str:
    """Predictions as a TSV file with numbered lines, the form of GLUE's submissions."""
    return "index\tprediction\n" + "".join(f"{i}\t{each}\n" for i, each in enumerate(predictions))
