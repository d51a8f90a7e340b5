"""Runs of an embedder: its files, its loss, and its predictions."""

from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.config.model import LONG_TEXT
from bert_tf.data import arrow, tables
from bert_tf.data.columns import Columns
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text
from bert_tf.io.remote import local_path
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.evaluation import trec_run
from bert_tf.tasks.embedding import EmbeddingRun, files, losses
from bert_tf.tasks.embedding.data import EmbeddingTarget, Ranking, form_of
from bert_tf.tasks.embedding.losses import DEFAULTS, EmbeddingLoss, Form, check_batch, check_form
from bert_tf.tasks.embedding.model import TextEmbedder
from bert_tf.tasks.task import Task, indexed
from bert_tf.tasks.task_model import TaskModel
from bert_tf.text import Tokenizer

_SPEARMAN, _NDCG = "spearman", "ndcg@10"


class EmbeddingTask(Task):
    """Reads texts for a `TextEmbedder`; see `EmbeddingData` for the formats."""

    best_metric = _SPEARMAN
    formats = files.FORMATS
    config: EmbeddingRun
    # The form of the training rows.
    _form: Form = "texts"
    _texts = 2

    @classmethod
    def best_metric_of(cls, config: Any) -> str:
        """`spearman` if the dev file has pairs with scores; otherwise `ndcg@10`."""
        data = config.data
        if data.format not in (*tables.FORMATS, *arrow.FORMATS):
            return _SPEARMAN if data.format == "sts-b" else _NDCG
        path = _path(config, "dev")
        is_there = data.format == "datasets" or arrow.files_of(path)
        rows = files.read(path, data.format) if is_there else None
        is_scored = isinstance(rows, Columns) and form_of(rows) == "scores"
        return _SPEARMAN if is_scored else _NDCG

    def files(self, split: str) -> dict[str, Path]:
        # In BEIR's folders these are the files of judgements.
        self.check_format()
        return {"": _path(self.config, split)}

    def training_rows(self) -> Columns:
        (path,) = self.files("train").values()
        rows = files.read(path, self.data.format)
        assert isinstance(rows, Columns)
        rows = rows.first(self.data.train_rows)
        self._form, self._texts = form_of(rows), max(2, len(rows.values))
        loss = self.loss()
        check_form(loss, self._form)
        if rows.targets is not None:
            loss.check(EmbeddingTarget().numbers(rows))
        return rows

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> TextEmbedder:
        settings = {name: v for name, v in self.initial.items() if name not in LONG_TEXT}
        chosen = {name: getattr(self.config.model, name) for name in ("pooling", "normalize")}
        settings |= {name: value for name, value in chosen.items() if value is not None}
        settings |= self.config.model.long_texts(self.initial)
        settings["max_length"] = self.config.train.max_length
        return TextEmbedder(encoder, tokenizer, **settings)

    def loss(self) -> EmbeddingLoss:
        """The configured loss, or the default loss for the form of the training rows."""
        settings = self.config.loss
        options = settings.model_dump(exclude_unset=True, exclude={"name", "matryoshka"})
        kind = losses.LOSSES[settings.name] if settings.name else DEFAULTS[self._form]
        loss = kind(**{name: value for name, value in options.items() if value is not None})
        return losses.Matryoshka(loss, settings.matryoshka) if settings.matryoshka else loss

    def compile(self, model: TaskModel, **options: Any) -> None:
        loss = self.loss()
        check_batch(loss, self.config.train.batch_size, self._texts)
        model.compile(loss=loss, **options)

    def read(self, path: Path) -> Columns | Collection:
        # The dev data of BEIR are evaluated by a search.
        rows = files.read(path, self.data.format, judged=True)
        if isinstance(rows, Collection) or rows.targets is not None:
            return rows
        if len(rows.values) == 1:
            raise UserError(
                f"{path} has only texts, so there is nothing to evaluate; give pairs, scores or "
                "labels"
            )
        # Pairs whose scores are not known, as in a test file of STS-B.
        return rows.without_targets() if self.best_metric == _SPEARMAN else rows

    def write_predictions(
        self,
        model: TaskModel,
        predictions: np.ndarray | Ranking,
        rows: Any,
        folder: Path,
        name: str,
    ) -> None:
        """Writes cosines as TSV, or search results as a run of TREC. Texts without ids are numbered
        in the order of their first occurrence.
        """
        if isinstance(predictions, Ranking):
            write_text(folder / f"{name}.trec", trec_run(predictions.found))
        else:
            words = [f"{value:.6g}" for value in predictions.tolist()]
            write_text(folder / f"{name}.tsv", indexed(words))


def _path(config: EmbeddingRun, split: str) -> Path:
    folder, name = local_path(config.data.path), getattr(config.data, split)
    return folder / name if name else files.find_file(folder, config.data.format, split)
