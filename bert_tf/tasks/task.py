"""What every task family does; `bert_tf.training.finetuning` asks for nothing else."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from bert_tf.config import FinetuningData, RunConfig
from bert_tf.data.batching import TrainingRows
from bert_tf.models import Encoder
from bert_tf.text import Tokenizer

Metrics = Mapping[str, float]


class Task(ABC):
    """Reads the data of one task, builds its model and scores it.

    Args:
        config: the run's configuration.
        tokenizer: its tokenizer.
        labels: names of the classes of a trained model; None finds them in the training data.

    Attributes:
        labels: names of the classes in the order of the logits; none where there are no classes.
    """

    # The metric that tells the best of several runs, the highest being best; see `best_metric_of`.
    best_metric: str

    def __init__(
        self, config: RunConfig, tokenizer: Tokenizer, labels: Sequence[str] | None = None
    ):
        self.config = config
        self.data: FinetuningData = config.data
        self.tokenizer = tokenizer
        self.labels = tuple(labels or ())
        self.best_metric = self.best_metric_of(config)

    @classmethod
    def best_metric_of(cls, config: RunConfig) -> str:
        """The metric that tells the best of several runs of `config`."""
        return cls.best_metric

    def files(self, split: str) -> dict[str, Path]:
        """The files of "train", "dev" or "test", by what their metrics' names end in.

        Mostly that is one file and nothing; MNLI has two files of each but the training data.
        """
        name = getattr(self.data, split) or f"{split}.{self.data.format}"
        return {"": Path(self.data.path) / name}

    def train_files(self) -> list[Path]:
        """All that is trained on: the file of "train" first."""
        return [*self.files("train").values()]

    def sources(self, split: str) -> list[Path]:
        """What the data of "train" or "dev" are read from; mostly the files themselves."""
        return self.train_files() if split == "train" else [*self.files(split).values()]

    def test_files(self) -> dict[str, Path]:
        """The files of "test" to predict for: what is configured, or else is there."""
        files = self.files("test")
        if self.data.test is not None:
            return files
        return {ending: path for ending, path in files.items() if path.is_file()}

    def needs_labels(self, path: Path) -> bool:
        """Whether a file is one to train on or to score."""
        return path in (*self.train_files(), *self.files("dev").values())

    def is_taken(self, name: str) -> bool:
        """Whether predictions of that name are, or may be, those for the run's own data."""
        return name.startswith(("dev", "test"))

    @abstractmethod
    def train_examples(self) -> TrainingRows:
        """The training data, ready for the model; finds `labels` where they are not given.

        Raises:
            UserError: a file or row that cannot be used, with its name and line.
        """

    @abstractmethod
    def model(self, encoder: Encoder) -> keras.Model:
        """The model on top of `encoder`, not compiled."""

    @abstractmethod
    def compile(self, model: keras.Model, **options: Any) -> None:
        """Compiles `model` with the task's loss; `options` (optimizer, …) go to its `compile`."""

    @abstractmethod
    def read(self, path: Path) -> Any:
        """The labelled data of one file, to predict and score.

        Raises:
            UserError: as `train_examples`, and a label that training did not have.
        """

    def remember(self, metrics: Metrics) -> None:
        """Takes over what a finished run found on its dev data; by default there is nothing.

        Args:
            metrics: what `score` gave there.
        """
        del metrics

    @abstractmethod
    def predict(self, model: keras.Model, data: Any) -> Any:
        """Predictions for what `read` gave, in its order."""

    @abstractmethod
    def score(self, predictions: Any, data: Any) -> dict[str, float]:
        """The official metrics of predictions."""

    @abstractmethod
    def write_predictions(self, predictions: Any, data: Any, folder: Path, name: str) -> None:
        """Writes predictions in the benchmark's own format, as `folder`/`name` with its ending."""
