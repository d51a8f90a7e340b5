"""Runs of token classification: tagged words in CoNLL's columns, or from TFDS.

With `data.document_context` a text is a whole document, its sentences one after the other, and else
one sentence.
"""

import dataclasses
from pathlib import Path

import numpy as np

from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text
from bert_tf.tasks.task import Task
from bert_tf.tasks.token_classification.config import (
    TokenClassificationData,
    TokenClassificationRun,
)
from bert_tf.tasks.token_classification.conll import read_conll, separator
from bert_tf.tasks.token_classification.model import (
    TaggedTexts,
    TokenClassifier,
    check_tags,
    labels_of,
)
from bert_tf.tasks.token_classification.tagged_sentences import read_tfds_tags
from bert_tf.text import Tokenizer


class TokenClassification(Task):
    """Reads tagged words for a `TokenClassifier`."""

    best_metric = "f1"
    formats = ("conll", "tfds")
    config: TokenClassificationRun
    data: TokenClassificationData

    def files(self, split: str) -> dict[str, Path]:
        # With TFDS a path is the name and the split.
        self.check_format()
        if self.data.format == "tfds":
            return {"": Path(self.data.path) / (getattr(self.data, split) or split)}
        return super().files(split)

    def training_rows(self) -> TaggedTexts:
        """The rows to train on. Every type has its B and its I, even if training lacks one of them.

        The types are those of the whole file, whatever `train_rows` says.
        """
        (path,) = self.files("train").values()
        rows = self._read(path)
        self.labels = labels_of(rows, str(path))
        return dataclasses.replace(rows, sentences=rows.sentences[: self.data.train_rows])

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> TokenClassifier:
        settings = self.config.model
        return TokenClassifier(
            encoder,
            tokenizer,
            self.labels,
            max_length=self.config.train.max_length,
            stride=self.data.stride,
            features=settings.features,
            lstm_units=settings.lstm_units,
        )

    def read(self, path: Path) -> TaggedTexts:
        """The sentences of a file, or of TFDS where no file has such a name.

        Other than those of the training and dev files, they may be words alone.
        """
        rows = self._read(path)
        check_tags(rows, self.labels, str(path))
        return rows

    def write_predictions(
        self,
        model: TokenClassifier,
        predictions: np.ndarray,
        rows: TaggedTexts,
        folder: Path,
        name: str,
    ) -> None:
        """Writes word, tag if it is known, and predicted tag, in columns as the data have them.

        So CoNLL's own script reads them with spaces, and that of WNUT-17 with tabs.
        """
        blocks = []
        for sentence, predicted in zip(
            rows.sentences, model.predicted(predictions, rows), strict=True
        ):
            known = [] if sentence.tags is None else [sentence.tags]
            lines = zip(sentence.words, *known, predicted, strict=True)
            # Those of TFDS are of no file, and may have the spaces that part them here.
            columns = ([field.replace(rows.separator, "_") for field in row] for row in lines)
            blocks.append("".join(f"{rows.separator.join(row)}\n" for row in columns))
        write_text(folder / f"{name}.conll", "\n".join(blocks))

    def _read(self, path: Path) -> TaggedTexts:
        settings = self.data
        if settings.format == "tfds" and not path.is_file():
            sentences = read_tfds_tags(str(path.parent), path.name, settings.lenient_tags)
            parted_by = " "
        else:
            parted_by = separator(path)
            sentences = read_conll(
                path,
                settings.word_column,
                settings.tag_column,
                settings.lenient_tags,
                self.needs_labels(path),
            )
        if settings.document_context and not sentences[-1].document:
            raise UserError(
                f"{path} has no -DOCSTART- lines between documents; add them, or set "
                "data.document_context: false"
            )
        return TaggedTexts(sentences, settings.document_context, parted_by)
