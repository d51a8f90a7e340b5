"""Runs of multiple choice: SWAG's and CODAH's files, and JSON lines."""

from pathlib import Path

import numpy as np

from bert_tf.data.columns import Columns
from bert_tf.encoder.encoder import Encoder
from bert_tf.io.atomic import write_text
from bert_tf.tasks.multiple_choice import MultipleChoiceData
from bert_tf.tasks.multiple_choice.data import FORMATS, read_choices
from bert_tf.tasks.multiple_choice.model import MultipleChoice
from bert_tf.tasks.task import Task, indexed
from bert_tf.text import Tokenizer

_SUFFIXES = {"swag": "csv", "codah": "tsv", "jsonl": "jsonl"}
_SWAG_DEV = "val.csv"


class MultipleChoiceTask(Task):
    """Reads contexts with choices for a `MultipleChoice` model. As in the paper, each choice is
    packed with its context. A choice of SWAG is the beginning of the next sentence with an ending.
    """

    best_metric = "accuracy"
    formats = FORMATS
    data: MultipleChoiceData

    def default_name(self, split: str) -> str:
        form = self.data.format
        if form not in _SUFFIXES:
            return super().default_name(split)
        return _SWAG_DEV if (form, split) == ("swag", "dev") else f"{split}.{_SUFFIXES[form]}"

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> MultipleChoice:
        return MultipleChoice(encoder, tokenizer, self.config.train.max_length)

    def read(self, path: Path) -> Columns:
        rows = read_choices(path, self.data.format)
        if self.needs_labels(path):
            rows.known_targets()
        return rows

    def write_predictions(
        self, model: MultipleChoice, predictions: np.ndarray, rows: Columns, folder: Path, name: str
    ) -> None:
        """Writes the numbers of the best choices, for SWAG in the form of its own script."""
        best = predictions.argmax(axis=1)
        if self.data.format == "swag":
            lines = [f"{i},{choice}\n" for i, choice in enumerate(best)]
            write_text(folder / f"{name}.csv", ",pred\n" + "".join(lines))
        else:
            write_text(folder / f"{name}.tsv", indexed(best))
