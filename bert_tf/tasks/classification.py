"""One label for a text or a pair of texts (paper, section 4.1)."""

from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from bert_tf.config import DataConfig, RunConfig
from bert_tf.data.batching import EncodedRows, ShuffledBatches, batches_by_length
from bert_tf.data.tables import read_table
from bert_tf.data.until_exit import map_until_exit
from bert_tf.errors import UserError
from bert_tf.files import write_text
from bert_tf.metrics.classification import classification_metrics
from bert_tf.models import Encoder, SequenceClassifier
from bert_tf.models.encoder import INPUTS
from bert_tf.text import Preprocessor, Tokenizer

# Texts that are tokenized at a time, and rows of a batch in evaluation.
_CHUNK = 1024
_EVALUATION_BATCH = 64


class Rows:
    """One file of labelled texts, ready for the model.

    Attributes:
        encoded: the packed texts.
        labels: int32 [rows].
    """

    def __init__(self, encoded: EncodedRows, labels: np.ndarray):
        self.encoded = encoded
        self.labels = labels


class Classification:
    """Reads labelled texts, trains a `SequenceClassifier` on them and scores it.

    Args:
        config: the run's configuration.
        tokenizer: its tokenizer.
        labels: names of the classes; None finds them in the training data, in sorted order.

    Attributes:
        labels: names of the classes in the order of the logits.

    Raises:
        UserError: a file or row that cannot be used, with its name and line.
    """

    # The metric that tells the best of several runs.
    best_metric = "accuracy"

    def __init__(
        self, config: RunConfig, tokenizer: Tokenizer, labels: Sequence[str] | None = None
    ):
        self._config = config
        self._preprocess = Preprocessor(
            tokenizer, max_length=config.train.max_length, padding="batch"
        )
        self._train: Rows | None = None
        if labels is None:
            texts, names = self._read(self.path("train"))
            self.labels = tuple(sorted(set(names)))
            if len(self.labels) < 2:
                raise UserError(
                    f"{self.path('train')}: only one label, {self.labels[0]!r}; a classifier "
                    "needs two or more"
                )
            self._train = self._encode(self.path("train"), texts, names)
        else:
            self.labels = tuple(labels)

    def path(self, split: str) -> Path:
        """The file of "train", "dev" or "test"."""
        data: DataConfig = self._config.data
        return Path(data.path) / (getattr(data, split) or f"{split}.{data.format}")

    def model(self, encoder: Encoder) -> SequenceClassifier:
        """The classifier on top of `encoder`, not compiled."""
        return SequenceClassifier(encoder, num_classes=len(self.labels))

    def compile(self, model: keras.Model, optimizer: keras.optimizers.Optimizer) -> None:
        """Compiles `model` with cross-entropy."""
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(
            optimizer, loss, metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")]
        )

    def steps_per_epoch(self) -> int:
        """Full batches in one pass over the training data.

        Raises:
            UserError: a batch is larger than the data.
        """
        rows, batch_size = len(self._train.labels), self._config.train.batch_size
        if batch_size > rows:
            raise UserError(
                f"train.batch_size {batch_size} is larger than the data: {self.path('train')} "
                f"has {rows} rows"
            )
        return rows // batch_size

    def train_batches(self, start: int) -> tf.data.Dataset:
        """Endless batches of (inputs, labels) from step `start` on, of rows of similar length."""
        settings, rows = self._config.train, self._train
        order = ShuffledBatches(rows.encoded.lengths, settings.batch_size, settings.seed)

        def batch(step: np.ndarray) -> list[np.ndarray]:
            chosen = order.rows(int(step))
            inputs = rows.encoded.take(chosen)
            return [*(inputs[name] for name in INPUTS), rows.labels[chosen]]

        def shaped(*arrays: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
            *inputs, labels = arrays
            inputs = [tf.ensure_shape(each, [settings.batch_size, None]) for each in inputs]
            labels = tf.ensure_shape(labels, [settings.batch_size])
            return dict(zip(INPUTS, inputs, strict=True)), labels

        steps = tf.data.Dataset.counter(start)
        return map_until_exit(steps, batch, [tf.int32] * 4).map(shaped).prefetch(tf.data.AUTOTUNE)

    def read(self, path: Path) -> Rows:
        """The labelled rows of a file, in its order."""
        return self._encode(path, *self._read(path))

    def predict(self, model: keras.Model, rows: Rows) -> np.ndarray:
        """float32 [rows, classes]: the logits of every row, in the file's order."""
        logits = np.zeros((len(rows.labels), len(self.labels)), np.float32)
        for chosen in batches_by_length(rows.encoded.lengths, _EVALUATION_BATCH):
            logits[chosen] = model.predict_on_batch(rows.encoded.take(chosen))
        return logits

    def score(self, logits: np.ndarray, rows: Rows) -> dict[str, float]:
        """The metrics of predictions."""
        return classification_metrics(logits, rows.labels)

    def write_predictions(self, logits: np.ndarray, path: Path) -> None:
        """Writes a TSV file in the form of GLUE's submissions: index, prediction."""
        lines = [f"{i}\t{self.labels[best]}\n" for i, best in enumerate(logits.argmax(axis=1))]
        write_text(path, "index\tprediction\n" + "".join(lines))

    def _read(self, path: Path) -> tuple[list[list[str]], list[str]]:
        """The texts, one list for each text column, and the labels of a file."""
        data = self._config.data
        columns = (*data.text_columns, data.label_column)
        rows = [list(row.values()) for _, row in read_table(path, data.format, columns)]
        if not rows:
            raise UserError(f"{path} has no rows")
        *texts, labels = zip(*rows, strict=True)
        return [list(column) for column in texts], list(labels)

    def _encode(self, path: Path, texts: list[list[str]], names: list[str]) -> Rows:
        index = {name: i for i, name in enumerate(self.labels)}
        for row, name in enumerate(names, start=1):
            if name not in index:
                raise UserError(
                    f"{path}, row {row}: label {name!r} is not in the training data; known labels "
                    f"are {', '.join(self.labels)}"
                )
        chunks = (
            self._preprocess(tuple(tf.constant(column[i : i + _CHUNK]) for column in texts))
            if len(texts) == 2
            else self._preprocess(tf.constant(texts[0][i : i + _CHUNK]))
            for i in range(0, len(names), _CHUNK)
        )
        labels = np.array([index[name] for name in names], np.int32)
        return Rows(EncodedRows.gather(chunks), labels)
