"""Runs of multi-label classification: tables and JSON lines."""

from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.data import arrow, tables
from bert_tf.data.columns import Columns
from bert_tf.data.targets import Labels
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.tasks.multi_label_classification import MultiLabelData
from bert_tf.tasks.multi_label_classification.metrics import sigmoid
from bert_tf.tasks.multi_label_classification.model import LabelPredictions, MultiLabelClassifier
from bert_tf.tasks.texts.run import TextTask
from bert_tf.text import Tokenizer

# The values in a column of a table if a row has the column's label, and if it does not.
_YES, _NO = ("1", "true", "True", 1), ("0", "false", "False", 0)


class MultiLabelClassification(TextTask):
    """Reads texts with labels for a `MultiLabelClassifier`."""

    best_metric = "micro_f1"
    formats = (*tables.FORMATS, *arrow.FORMATS)
    data: MultiLabelData

    @property
    def target(self) -> Labels:
        return Labels(self.labels)

    def prepare(self, rows: Columns) -> None:
        self.labels = self.data.label_columns or self.target.found_in(rows)

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> MultiLabelClassifier:
        thresholds = self.data.thresholds
        return MultiLabelClassifier(
            encoder, tokenizer, self.labels, thresholds=thresholds, **self.settings()
        )

    def words(self, predictions: LabelPredictions, submitted: bool) -> list[str]:
        joined = []
        for row in sigmoid(predictions.logits):
            given = [
                i for i in (-row).argsort(kind="stable") if row[i] >= predictions.thresholds[i]
            ]
            joined.append(self.data.label_separator.join(self.labels[i] for i in given))
        return joined

    def label_of(self, row: Mapping[str, Any], place: str, is_table: bool) -> Any:
        # The labels are in a list, joined in one text, or have a column of 0 and 1 each.
        data = self.data
        if data.label_columns is not None:
            return _of_columns(row, data.label_columns, place)
        found = row.get(data.label_column)
        if not is_table or found is None:
            return found
        names = [each.strip() for each in found.split(data.label_separator)]
        if names == [""]:
            return []
        if "" in names:
            raise UserError(f"{place}: one of the labels is empty; remove it")
        return names


def _of_columns(row: Mapping[str, Any], labels: Sequence[str], place: str) -> list[str] | None:
    there = [name for name in labels if name in row]
    if there and len(there) < len(labels):
        missing = next(name for name in labels if name not in row)
        raise UserError(f"{place}: no column {missing!r}")
    for name in there:
        if row[name] not in (*_YES, *_NO):
            raise UserError(f"{place}: the column {name} contains {row[name]!r}; write 0 or 1")
    return [name for name in there if row[name] in _YES] if there else None
