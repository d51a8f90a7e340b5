"""Runs of multi-label classification: tables and JSON lines."""

from pathlib import Path

from bert_tf.data import tables
from bert_tf.data.columns import Columns
from bert_tf.data.targets import Labels
from bert_tf.encoder.encoder import Encoder
from bert_tf.tasks.multi_label_classification import MultiLabelData
from bert_tf.tasks.multi_label_classification.data import read
from bert_tf.tasks.multi_label_classification.metrics import sigmoid
from bert_tf.tasks.multi_label_classification.model import LabelPredictions, MultiLabelClassifier
from bert_tf.tasks.texts.run import TextTask
from bert_tf.text import Tokenizer


class MultiLabelClassification(TextTask):
    """Reads texts with labels for a `MultiLabelClassifier`."""

    best_metric = "micro_f1"
    formats = tables.FORMATS
    data: MultiLabelData

    @property
    def target(self) -> Labels:
        return Labels(self.labels)

    def prepare(self, rows: Columns) -> None:
        self.labels = self.target.found_in(rows)

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> MultiLabelClassifier:
        thresholds = self.data.thresholds
        return MultiLabelClassifier(
            encoder, tokenizer, self.labels, thresholds=thresholds, **self.settings()
        )

    def words(self, predictions: LabelPredictions, submitted: bool) -> list[str]:
        """The labels of each text, the most probable first."""
        joined = []
        for row in sigmoid(predictions.logits):
            given = [
                i for i in (-row).argsort(kind="stable") if row[i] >= predictions.thresholds[i]
            ]
            joined.append(self.data.label_separator.join(self.labels[i] for i in given))
        return joined

    def _read(self, path: Path) -> Columns:
        rows = read(path, self.data, self.needs_labels(path))
        if self.needs_labels(path):
            rows.known_targets()
        return rows
