"""What classification and regression share: texts to read, to encode and to predict for."""

import dataclasses
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.atomic import write_text
from bert_tf.config import ClassificationData
from bert_tf.data import text_files
from bert_tf.data.batching import EncodedRows
from bert_tf.data.glue_tasks import GLUE
from bert_tf.data.labelled_texts import LabelledTexts
from bert_tf.tasks.predicting import predict_rows
from bert_tf.tasks.task import Task
from bert_tf.text import Preprocessor

# Texts that are tokenized at a time, and rows of a batch in evaluation.
_CHUNK = 1024
_EVALUATION_BATCH = 64


@dataclasses.dataclass(frozen=True)
class EncodedTexts:
    """The rows of one file, ready for the model.

    Attributes:
        path: the file, or the name and split of TFDS.
        benchmark: the task of GLUE that they are of, or "".
        encoded: the packed texts.
        targets: [rows], int32 classes or float32 numbers; None where there are no labels.
    """

    path: Path
    benchmark: str
    encoded: EncodedRows
    targets: np.ndarray | None

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]: tokens of each row."""
        return self.encoded.lengths

    def take(self, rows: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The encoder's inputs [batch, seq_len], and targets [batch]."""
        return self.encoded.take(rows), self.targets[rows]


class TextTask(Task):
    """A task on one text or two: see `bert_tf.data.text_files` for what can be read."""

    data: ClassificationData

    @classmethod
    def best_metric_of(cls, config: Any) -> str:
        """GLUE's own metric for a task of GLUE."""
        task = text_files.glue_task(config.data)
        return GLUE[task].metrics[0] if task else cls.best_metric

    def files(self, split: str) -> dict[str, Path]:
        """See `Task`; of TFDS, the name and the split."""
        return text_files.find_files(self.data, split)

    def sources(self, split: str) -> list[Path]:
        """See `Task`; MRPC's may be made of Microsoft's files."""
        made_of = (text_files.made_of(path, self.data) for path in super().sources(split))
        return [source for sources in made_of for source in sources]

    def test_files(self) -> dict[str, Path]:
        """See `Task`."""
        return self.files("test")

    def is_taken(self, name: str) -> bool:
        """See `Task`; GLUE's server has names of its own for those of its test data."""
        task = text_files.glue_task(self.data)
        return super().is_taken(name) or bool(task) and name in GLUE[task].submissions.values()

    def train_examples(self) -> EncodedTexts:
        """See `Task`."""
        (path,) = self.files("train").values()
        rows = self._read(path)
        self.prepare(rows)
        return self._encode(path, rows.first(self.data.train_rows))

    def read(self, path: Path) -> EncodedTexts:
        """The rows of a file, in its order; other than the dev files', they may have no labels."""
        return self._encode(path, self._read(path))

    def predict(self, model: keras.Model, data: EncodedTexts) -> np.ndarray:
        """float32 [rows, ...]: the model's output for every row, in the file's order."""
        return predict_rows(model, data.encoded.take, data.lengths, _EVALUATION_BATCH)

    def score(self, predictions: np.ndarray, data: EncodedTexts) -> dict[str, float]:
        """The metrics of predictions, for a task of GLUE its own; none without labels."""
        if data.targets is None:
            return {}
        metrics = self.metrics(predictions, data.targets)
        if not data.benchmark:
            return metrics
        return {name: metrics[name] for name in (*GLUE[data.benchmark].metrics, "loss")}

    def write_predictions(
        self, predictions: np.ndarray, data: EncodedTexts, folder: Path, name: str
    ) -> None:
        """Writes a TSV file with index and prediction, the form of GLUE's submissions.

        Those for a test file of GLUE are called as its server wants, unless it is the dev file.
        """
        is_dev = name in {f"dev{ending}" for ending in self.files("dev")}
        submitted = None if is_dev else self._submitted(data)
        words = self.words(predictions, submitted is not None)
        lines = [f"{i}\t{word}\n" for i, word in enumerate(words)]
        write_text(folder / f"{submitted or name}.tsv", "index\tprediction\n" + "".join(lines))

    @abstractmethod
    def prepare(self, rows: LabelledTexts) -> None:
        """Takes from the training data what is to be known of them, such as the labels."""

    @abstractmethod
    def targets(self, rows: LabelledTexts) -> np.ndarray:
        """[rows]: what the model is to predict.

        Raises:
            UserError: a label that it cannot.
        """

    @abstractmethod
    def metrics(self, predictions: np.ndarray, targets: np.ndarray) -> dict[str, float]:
        """All metrics of the task."""

    @abstractmethod
    def words(self, predictions: np.ndarray, submitted: bool) -> list[str]:
        """Predictions as a file has them; `submitted` ones are for GLUE's server."""

    def _read(self, path: Path) -> LabelledTexts:
        return text_files.read(path, self.data, self.needs_labels(path))

    def _submitted(self, data: EncodedTexts) -> str | None:
        """What GLUE's server calls the predictions for `data`; None if it does not ask for them.

        The predictions for the run's own test files are not to be replaced by those for others.
        """
        submitted = _submission(data.path, data.benchmark)
        own = self.test_files().values()
        if data.path.resolve() in {each.resolve() for each in own}:
            return submitted
        task = text_files.glue_task(self.data)
        return None if submitted in [_submission(each, task) for each in own] else submitted

    def _encode(self, path: Path, rows: LabelledTexts) -> EncodedTexts:
        preprocess = Preprocessor(
            self.tokenizer, max_length=self.config.train.max_length, padding="batch"
        )

        def packed() -> Iterator[dict[str, tf.Tensor]]:
            for start in range(0, len(rows), _CHUNK):
                texts = [tf.constant(each[start : start + _CHUNK]) for each in rows.columns]
                yield preprocess(tuple(texts))

        targets = None if rows.labels is None else self.targets(rows)
        return EncodedTexts(path, rows.benchmark, EncodedRows.gather(packed()), targets)


def _submission(path: Path, task: str) -> str | None:
    return GLUE[task].submissions.get(path.stem) if task else None
