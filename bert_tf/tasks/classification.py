"""One label for a text or a pair of texts (paper, section 4.1)."""

import dataclasses
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.data.batching import EncodedRows, batches_by_length
from bert_tf.data.tables import read_table
from bert_tf.errors import UserError
from bert_tf.files import write_text
from bert_tf.metrics.classification import classification_metrics
from bert_tf.models import Encoder, SequenceClassifier
from bert_tf.tasks.task import Task
from bert_tf.text import Preprocessor

# Texts that are tokenized at a time, and rows of a batch in evaluation.
_CHUNK = 1024
_EVALUATION_BATCH = 64


@dataclasses.dataclass(frozen=True)
class LabelledRows:
    """One file of labelled texts, ready for the model.

    Attributes:
        encoded: the packed texts.
        labels: int32 [rows].
    """

    encoded: EncodedRows
    labels: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]: tokens of each row."""
        return self.encoded.lengths

    def take(self, rows: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The encoder's inputs [batch, seq_len], and labels [batch]."""
        return self.encoded.take(rows), self.labels[rows]


class Classification(Task):
    """Reads labelled texts, trains a `SequenceClassifier` on them and scores it."""

    best_metric = "accuracy"

    def train_examples(self) -> LabelledRows:
        """See `Task`."""
        (path,) = self.files("train").values()
        texts, names = self._read(path)
        self.labels = tuple(sorted(set(names)))
        if len(self.labels) < 2:
            raise UserError(
                f"{path}: only one label, {self.labels[0]!r}; a classifier needs two or more"
            )
        return self._encode(path, texts, names)

    def model(self, encoder: Encoder) -> SequenceClassifier:
        """See `Task`."""
        return SequenceClassifier(encoder, num_classes=len(self.labels))

    def compile(self, model: keras.Model, **options: Any) -> None:
        """Compiles `model` with cross-entropy."""
        model.compile(
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")],
            **options,
        )

    def read(self, path: Path) -> LabelledRows:
        """The labelled rows of a file, in its order."""
        return self._encode(path, *self._read(path))

    def predict(self, model: keras.Model, data: LabelledRows) -> np.ndarray:
        """float32 [rows, classes]: the logits of every row, in the file's order."""
        logits = np.zeros((len(data.labels), len(self.labels)), np.float32)
        for chosen in batches_by_length(data.lengths, _EVALUATION_BATCH):
            logits[chosen] = model.predict_on_batch(data.encoded.take(chosen))
        return logits

    def score(self, predictions: np.ndarray, data: LabelledRows) -> dict[str, float]:
        """See `classification_metrics`."""
        return classification_metrics(predictions, data.labels)

    def write_predictions(
        self, predictions: np.ndarray, data: LabelledRows, folder: Path, name: str
    ) -> None:
        """Writes a TSV file in the form of GLUE's submissions: index, prediction."""
        best = predictions.argmax(axis=1)
        lines = [f"{i}\t{self.labels[label]}\n" for i, label in enumerate(best)]
        write_text(folder / f"{name}.tsv", "index\tprediction\n" + "".join(lines))

    def _read(self, path: Path) -> tuple[list[list[str]], list[str]]:
        """The texts, one list for each text column, and the labels of a file."""
        columns = (*self.data.text_columns, self.data.label_column)
        rows = [list(row.values()) for _, row in read_table(path, self.data.format, columns)]
        if not rows:
            raise UserError(f"{path} has no rows")
        *texts, labels = zip(*rows, strict=True)
        return [list(column) for column in texts], list(labels)

    def _encode(self, path: Path, texts: list[list[str]], names: list[str]) -> LabelledRows:
        index = {name: i for i, name in enumerate(self.labels)}
        for row, name in enumerate(names, start=1):
            if name not in index:
                raise UserError(
                    f"{path}, row {row}: label {name!r} is not in the training data; known labels "
                    f"are {', '.join(self.labels)}"
                )
        preprocess = Preprocessor(
            self.tokenizer, max_length=self.config.train.max_length, padding="batch"
        )
        chunks = (
            preprocess(tuple(tf.constant(column[i : i + _CHUNK]) for column in texts))
            if len(texts) == 2
            else preprocess(tf.constant(texts[0][i : i + _CHUNK]))
            for i in range(0, len(names), _CHUNK)
        )
        labels = np.array([index[name] for name in names], np.int32)
        return LabelledRows(EncodedRows.gather(chunks), labels)
