"""Which of several endings fits a context (SWAG; paper, section 4.4)."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.atomic import write_text
from bert_tf.config import MultipleChoiceData
from bert_tf.data.batching import EncodedRows
from bert_tf.data.choices import FORMATS, Choices, read_choices
from bert_tf.errors import UserError
from bert_tf.metrics.classification import classification_metrics
from bert_tf.models import Encoder, MultipleChoice
from bert_tf.tasks.predicting import predict_rows
from bert_tf.tasks.task import Task
from bert_tf.text import Preprocessor

# Texts that are tokenized at a time, and rows of a batch in evaluation.
_CHUNK = 256
_EVALUATION_BATCH = 16
_SUFFIXES = {"swag": "csv", "codah": "tsv", "jsonl": "jsonl"}
_SWAG_DEV = "val.csv"


@dataclasses.dataclass(frozen=True)
class EncodedChoices:
    """The rows of one file, ready for the model.

    Attributes:
        encoded: the packed pairs of context and choice, those of a row one after the other.
        choices: how many a row has.
        labels: int32 [rows]; None where there are none.
    """

    encoded: EncodedRows
    choices: int
    labels: np.ndarray | None

    @classmethod
    def of(cls, rows: Sequence[Choices], preprocess: Preprocessor) -> "EncodedChoices":
        """All rows of a file, each choice packed with its context."""
        number = len(rows[0].choices)

        def packed() -> Iterator[dict[str, tf.Tensor]]:
            for start in range(0, len(rows), _CHUNK):
                chunk = rows[start : start + _CHUNK]
                contexts = [row.context for row in chunk for _ in range(number)]
                choices = [choice for row in chunk for choice in row.choices]
                yield preprocess((tf.constant(contexts), tf.constant(choices)))

        labels = None
        if rows[0].label is not None:
            labels = np.array([row.label for row in rows], np.int32)
        return cls(EncodedRows.gather(packed()), number, labels)

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]: tokens of each row's longest choice."""
        return self.encoded.lengths.reshape(-1, self.choices).max(axis=1)

    def inputs(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The model's inputs, [batch, choices, seq_len]."""
        pairs = rows[:, None] * self.choices + np.arange(self.choices)
        return {
            name: values.reshape(len(rows), self.choices, -1)
            for name, values in self.encoded.take(pairs.ravel()).items()
        }

    def take(self, rows: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The model's inputs, and labels [batch]."""
        return self.inputs(rows), self.labels[rows]


class MultipleChoiceTask(Task):
    """Reads contexts with choices, trains a `MultipleChoice` model on them and scores it.

    As the paper and the reference literature have it, each choice is packed with its context:
    [CLS] context [SEP] choice [SEP]. Of SWAG the context is a sentence, and a choice the beginning
    of the next one with an ending.
    """

    best_metric = "accuracy"
    data: MultipleChoiceData

    def files(self, split: str) -> dict[str, Path]:
        """See `Task`."""
        form = self.data.format
        if form not in FORMATS:
            raise UserError(f"unknown data.format {form!r}; choose one of {', '.join(FORMATS)}")
        name = getattr(self.data, split) or f"{split}.{_SUFFIXES[form]}"
        if (form, split, self.data.dev) == ("swag", "dev", None):
            name = _SWAG_DEV
        return {"": Path(self.data.path) / name}

    def train_examples(self) -> EncodedChoices:
        """See `Task`."""
        (path,) = self.files("train").values()
        return self._encode(self._read(path)[: self.data.train_rows])

    def model(self, encoder: Encoder) -> MultipleChoice:
        """See `Task`."""
        return MultipleChoice(encoder)

    def compile(self, model: keras.Model, **options: Any) -> None:
        """Compiles `model` with cross-entropy over the choices."""
        model.compile(
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")],
            **options,
        )

    def read(self, path: Path) -> EncodedChoices:
        """The rows of a file, in its order; other than the dev file's, they may have no labels."""
        return self._encode(self._read(path))

    def predict(self, model: keras.Model, data: EncodedChoices) -> np.ndarray:
        """float32 [rows, choices]: the logits of every row, in the file's order."""
        return predict_rows(model, data.inputs, data.lengths, _EVALUATION_BATCH)

    def score(self, predictions: np.ndarray, data: EncodedChoices) -> dict[str, float]:
        """`accuracy` and `loss`, the mean cross-entropy; nothing without labels."""
        if data.labels is None:
            return {}
        metrics = classification_metrics(predictions, data.labels)
        return {name: metrics[name] for name in ("accuracy", "loss")}

    def write_predictions(
        self, predictions: np.ndarray, data: EncodedChoices, folder: Path, name: str
    ) -> None:
        """Writes the number of the best choice of every row, counted from 0.

        For SWAG as its own script does, a CSV file with the row and `pred`; for others a TSV file
        with index and prediction.
        """
        separator, header, ending = "\t", "index\tprediction", "tsv"
        if self.data.format == "swag":
            separator, header, ending = ",", ",pred", "csv"
        lines = [f"{i}{separator}{best}\n" for i, best in enumerate(predictions.argmax(axis=1))]
        write_text(folder / f"{name}.{ending}", f"{header}\n" + "".join(lines))

    def _read(self, path: Path) -> list[Choices]:
        rows = read_choices(path, self.data.format)
        if rows[0].label is None and self.needs_labels(path):
            raise UserError(f"{path} has no labels")
        return rows

    def _encode(self, rows: Sequence[Choices]) -> EncodedChoices:
        max_length = self.config.train.max_length
        return EncodedChoices.of(rows, Preprocessor(self.tokenizer, max_length, padding="batch"))
