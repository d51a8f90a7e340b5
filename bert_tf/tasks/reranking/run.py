"""Runs of re-ranking: tables, JSON lines, MS MARCO's triples and BEIR's folders."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.data import arrow, tables
from bert_tf.data.columns import Columns
from bert_tf.encoder.encoder import Encoder
from bert_tf.io.atomic import write_text
from bert_tf.retrieval.evaluation import trec_run
from bert_tf.tasks.reranking import RerankingData, RerankingRun, candidates
from bert_tf.tasks.reranking.data import FORMATS, read_candidates
from bert_tf.tasks.reranking.losses import LOSSES, RankingLoss
from bert_tf.tasks.reranking.model import Reranker
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_model import TaskModel
from bert_tf.text import Tokenizer


class Reranking(Task):
    """Reads queries with passages for a `Reranker`."""

    best_metric = "ndcg@10"
    formats = FORMATS
    config: RerankingRun
    data: RerankingData
    _loss: RankingLoss | None = None

    def default_name(self, split: str) -> str:
        is_named = self.data.format in (*tables.FORMATS, *arrow.FORMATS)
        return super().default_name(split) if is_named else f"{split}.tsv"

    def training_rows(self) -> Columns:
        rows = super().training_rows()
        self._loss = self.loss_of(rows)
        candidates.check_loss(rows, self._loss)
        return rows

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> Reranker:
        activation = self.config.model.activation or self.initial.get("activation", "sigmoid")
        settings = self.config.model.long_texts(self.initial)
        return Reranker(encoder, tokenizer, activation, self.config.train.max_length, **settings)

    def compile(self, model: TaskModel, **options: Any) -> None:
        model.compile(loss=self._loss, **options)

    def read(self, path: Path) -> Columns:
        # For a loss that compares passages, rows of single passages become lists.
        data = self.data
        rows = read_candidates(path, self._format_of(path), data.negatives, data.negatives_seed)
        if self.needs_labels(path):
            rows.known_targets("relevances")
        is_single = not candidates.has_lists(rows)
        return candidates.grouped(rows) if is_single and self.loss_of(rows).compares else rows

    def score(self, model: TaskModel, predictions: Any, rows: Columns) -> dict[str, float]:
        # A model that was loaded is scored with the configured loss too.
        loss = self.loss_of(rows)
        return {} if rows.targets is None else candidates.ranking_metrics(predictions, rows, loss)

    def write_predictions(
        self,
        model: TaskModel,
        predictions: Sequence[np.ndarray],
        rows: Columns,
        folder: Path,
        name: str,
    ) -> None:
        """Writes a run of TREC with logits as scores; texts without ids are numbered."""
        queries: dict[str, str] = {}
        passages: dict[str, str] = {}
        found: dict[str, dict[str, float]] = {}
        for row, logits in enumerate(predictions):
            query_id, passage_ids = ("", ()) if rows.ids is None else rows.ids[row]
            query, keys = candidates.keys_of(rows, row)
            scores = found.setdefault(queries.setdefault(query, query_id or str(len(queries))), {})
            for key, logit in zip(keys, logits, strict=True):
                number = key if passage_ids else str(len(passages))
                scores[passages.setdefault(key, number)] = float(logit)
        write_text(folder / f"{name}.trec", trec_run(found))

    def loss_of(self, rows: Columns) -> RankingLoss:
        """The configured loss, or the default loss for such rows."""
        name = self.config.loss.name
        return LOSSES[name]() if name else candidates.default_loss(candidates.has_lists(rows))

    def _format_of(self, path: Path) -> str:
        self.check_format()
        if arrow.reads(path, self.data.format):
            return "parquet"
        if self.data.format not in (*tables.FORMATS, *arrow.FORMATS):
            return self.data.format
        own = [each for split in ("train", "dev", "test") for each in self.files(split).values()]
        return tables.format_of(path, self.data.format, own)
