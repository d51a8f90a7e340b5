"""Runs of multi-label classification: tables and JSON lines."""

from pathlib import Path

from bert_tf.data import tables
from bert_tf.encoder.encoder import Encoder
from bert_tf.io.atomic import write_text
from bert_tf.tasks.multi_label_classification.config import MultiLabelData
from bert_tf.tasks.multi_label_classification.data import MultiLabelTexts, read
from bert_tf.tasks.multi_label_classification.metrics import sigmoid
from bert_tf.tasks.multi_label_classification.model import MultiLabelClassifier, Predictions
from bert_tf.tasks.task import Task, indexed
from bert_tf.text import Tokenizer


class MultiLabelClassification(Task):
    """Reads texts with labels for a `MultiLabelClassifier`."""

    best_metric = "micro_f1"
    formats = tables.FORMATS
    data: MultiLabelData

    def files(self, split: str) -> dict[str, Path]:
        """See `Task`."""
        self.check_format()
        return super().files(split)

    def training_rows(self) -> MultiLabelTexts:
        """See `Task`. The labels are those of the whole file, whatever `train_rows` says."""
        (path,) = self.files("train").values()
        rows = self._read(path)
        self.labels = rows.all_classes()
        return rows.first(self.data.train_rows)

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> MultiLabelClassifier:
        """See `Task`."""
        return MultiLabelClassifier(
            encoder,
            tokenizer,
            self.labels,
            pair=len(self.data.text_columns or ("text",)) == 2,
            max_length=self.config.train.max_length,
            thresholds=self.data.thresholds,
        )

    def compile(self, model: MultiLabelClassifier, **options: object) -> None:
        """See `Task`."""
        model.compile(**model.own_losses(), **options)

    def read(self, path: Path) -> MultiLabelTexts:
        """See `Task`."""
        rows = self._read(path)
        if rows.labels is not None or self.needs_labels(path):
            rows.matrix(self.labels)
        return rows

    def _read(self, path: Path) -> MultiLabelTexts:
        own = [each for split in ("train", "dev", "test") for each in self.files(split).values()]
        file_format = tables.format_of(path, self.data.format, own)
        return read(path, file_format, self.data, self.needs_labels(path))

    def write_predictions(
        self,
        model: MultiLabelClassifier,
        predictions: Predictions,
        rows: MultiLabelTexts,
        folder: Path,
        name: str,
    ) -> None:
        """Writes a TSV file with index and prediction: the labels, the most probable first."""
        joined = []
        for row in sigmoid(predictions.logits):
            given = [
                i for i in (-row).argsort(kind="stable") if row[i] >= predictions.thresholds[i]
            ]
            joined.append(self.data.label_separator.join(model.labels[i] for i in given))
        write_text(folder / f"{name}.tsv", indexed(joined))
