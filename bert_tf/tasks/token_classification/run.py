"""Runs of token classification. With `data.document_context` a text is a whole document."""

import dataclasses
import json
from pathlib import Path

import numpy as np

from bert_tf.data import arrow
from bert_tf.data.columns import Columns
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text
from bert_tf.io.remote import is_file
from bert_tf.tasks.task import Task
from bert_tf.tasks.token_classification import TokenClassificationData, TokenClassificationRun
from bert_tf.tasks.token_classification.conll import read_conll, separator
from bert_tf.tasks.token_classification.model import TokenClassifier
from bert_tf.tasks.token_classification.span_files import read_spans
from bert_tf.tasks.token_classification.spans import are_texts
from bert_tf.tasks.token_classification.tagged_sentences import WordTags, of_table, read_tfds_tags
from bert_tf.text import Tokenizer


class TokenClassification(Task):
    """Reads tagged words for a `TokenClassifier`."""

    best_metric = "f1"
    formats = ("conll", "spans", *arrow.FORMATS, "tfds")
    config: TokenClassificationRun
    data: TokenClassificationData
    _learned: Columns | None = None

    def default_name(self, split: str) -> str:
        # With TFDS a path is the name and the split.
        if self.data.format in arrow.FORMATS:
            return super().default_name(split)
        return split + {"conll": ".conll", "spans": ".jsonl", "tfds": ""}[self.data.format]

    def training_rows(self) -> Columns:
        (path,) = self.files("train").values()
        rows = self._read(path)
        # The labels are those of the whole file, whatever `train_rows` says.
        self.labels = WordTags().found_in(rows)
        self._learned = rows.first(self.data.train_rows)
        return self._learned

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> TokenClassifier:
        settings = self.config.model
        model = TokenClassifier(
            encoder,
            tokenizer,
            self.labels,
            max_length=self.config.train.max_length,
            stride=self.data.stride,
            features=settings.features,
            lstm_units=settings.lstm_units,
            split_punctuation=self.data.split_punctuation,
            aggregation=settings.aggregation,
        )
        if self._learned is not None:
            model.learn_from(self._learned)
        return model

    def read(self, path: Path) -> Columns:
        rows = self._read(path)
        if rows.targets is not None:
            WordTags(self.labels).numbers(rows)
        return rows

    def write_predictions(
        self,
        model: TokenClassifier,
        predictions: np.ndarray,
        rows: Columns,
        folder: Path,
        name: str,
    ) -> None:
        """Writes words, tags if known, and predicted tags, in columns as CoNLL's script reads them.
        Texts are written with the spans of their entities, as `read_spans` reads them.
        """
        path, blocks = rows.path, []
        if are_texts(rows):
            texts = [*rows.column("text")]
            for text, entities in zip(texts, model.predict(texts, verbose=0), strict=True):
                names = {"start": "start", "end": "end", "type": "label", "score": "score"}
                spans = [{names[key]: each[key] for key in names} for each in entities]
                line = json.dumps({"text": text, "spans": spans}, ensure_ascii=False)
                blocks.append(f"{line}\n")
            write_text(folder / f"{name}.jsonl", "".join(blocks))
            return
        parted_by = separator(path) if path is not None and is_file(path) else " "
        known = rows.targets or [()] * len(rows)
        predicted = model.predicted(predictions, rows)
        for words, tags, found in zip(rows.column("words"), known, predicted, strict=True):
            # Words from TFDS come from no file, and may contain the separator.
            lines = zip(words, *([tags] if tags else []), found, strict=True)
            columns = ([field.replace(parted_by, "_") for field in line] for line in lines)
            blocks.append("".join(f"{parted_by.join(line)}\n" for line in columns))
        write_text(folder / f"{name}.conll", "\n".join(blocks))

    def _read(self, path: Path) -> Columns:
        settings = self.data
        table = arrow.read(path) if arrow.reads(path, settings.format) else None
        if settings.format == "spans" or table and not table.first_of(("tokens", "words")):
            return read_spans(path, settings.format)
        if settings.format == "tfds" and not is_file(path):
            rows = read_tfds_tags(str(path.parent), path.name, settings.lenient_tags)
        elif table:
            rows = of_table(table, path, settings.lenient_tags)
        else:
            columns = settings.word_column, settings.tag_column
            rows = read_conll(path, *columns, settings.lenient_tags, self.needs_labels(path))
        if not settings.document_context:
            return dataclasses.replace(rows, ids=None)
        if rows.ids is None or not rows.ids[-1]:
            raise UserError(
                f"{path} has no -DOCSTART- lines between documents; add them, or set "
                "data.document_context: false"
            )
        return dataclasses.replace(rows, ids=[(path, number) for number in rows.ids])
