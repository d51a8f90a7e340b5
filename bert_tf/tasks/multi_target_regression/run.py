"""Runs of multi-target regression: tables and JSON lines."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.data import arrow, tables
from bert_tf.data.columns import Columns
from bert_tf.data.targets import Number
from bert_tf.encoder.encoder import Encoder
from bert_tf.io.atomic import write_text
from bert_tf.tasks.multi_target_regression import MultiTargetData
from bert_tf.tasks.multi_target_regression.model import MultiTargetRegressor, Numbers
from bert_tf.tasks.task_model import TaskModel
from bert_tf.tasks.texts.run import TextTask
from bert_tf.text import Tokenizer


class MultiTargetRegression(TextTask):
    """Reads texts with numbers for a `MultiTargetRegressor`."""

    best_metric = "spearman"
    formats = (*tables.FORMATS, *arrow.FORMATS)
    data: MultiTargetData
    has_classes = False

    @property
    def target(self) -> Numbers:
        return Numbers(tuple(self.data.label_columns))

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> MultiTargetRegressor:
        return MultiTargetRegressor(encoder, tokenizer, self.target.names, **self.settings())

    def write_predictions(
        self, model: TaskModel, predictions: np.ndarray, rows: Columns, folder: Path, name: str
    ) -> None:
        lines = ["\t".join(("index", *self.target.names))]
        for row, numbers in enumerate(predictions):
            lines.append("\t".join((str(row), *(f"{number:.6g}" for number in numbers))))
        write_text(folder / f"{name}.tsv", "\n".join(lines) + "\n")

    def words(self, predictions: Any, submitted: bool) -> list[str]:
        raise NotImplementedError

    def label_of(self, row: Mapping[str, Any], place: str, is_table: bool) -> Any:
        found = {name: row[name] for name in self.target.names if name in row}
        return {
            name: Number().from_text(value) if isinstance(value, str) else value
            for name, value in found.items()
        } or None
