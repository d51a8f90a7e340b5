"""Which passages answer a query best."""

import dataclasses
from typing import Literal

from bert_tf.checkpoints.heads import CROSS_ENCODER
from bert_tf.config.data import FinetuningData
from bert_tf.config.model import LongTextModel
from bert_tf.config.run import FinetuningRun
from bert_tf.config.section import Natural, Section
from bert_tf.tasks import classification
from bert_tf.tasks.family import TaskFamily


class RerankingData(FinetuningData):
    """Queries with passages and their relevance: see `bert_tf.tasks.reranking`."""

    format: str
    """`tsv` or `csv` with the columns `query`, `passage` and `relevance`; `jsonl`, `parquet` or
    `datasets` with the same, a list of passages with a list of relevances, or `positive` and
    `negatives`; `triples`, MS MARCO's TSV of query, positive and negative; or `beir`, a folder with
    `corpus.jsonl`, `queries.jsonl` and `qrels`. The default names are `train.tsv`, `dev.tsv` and
    `test.tsv`, with the ending of the format; those of beir are in `qrels`.
    """
    negatives: Natural = 8
    """For format beir: how many passages of the corpus are drawn for each query as not relevant, in
    addition to those that qrels judges.
    """
    negatives_seed: int = 0
    """Seed of that draw."""


class RankingModel(LongTextModel):
    """As `LongTextModel`, and how a score is computed."""

    activation: Literal["sigmoid", "identity"] | None = None
    """The function from logits to scores: `sigmoid`, or `identity`, which changes nothing. null is
    the function of the initial checkpoint if it is a re-ranker, and otherwise `sigmoid`.
    """


class RankingLossConfig(Section):
    """The loss: see `bert_tf.tasks.reranking.losses`."""

    name: (
        Literal["binary_cross_entropy", "mean_squared_error", "list_net", "lambda_loss"] | None
    ) = None
    """null is list_net if a row has a list of passages, and otherwise binary_cross_entropy, for a
    relevance from 0 to 1. mean_squared_error learns the scores of a teacher. For list_net and
    lambda_loss, the rows of the same query form one list.
    """


class RerankingRun(FinetuningRun):
    """Which passages answer a query best."""

    task: Literal["reranking"]
    data: RerankingData
    """Queries with passages and their relevance."""
    model: RankingModel = RankingModel()
    """The sizes of the encoder, and how a score is computed."""
    loss: RankingLossConfig = RankingLossConfig()
    """The loss on the relevance of passages."""


FAMILY = TaskFamily(
    name="reranking",
    title="Re-ranking",
    model="bert_tf.tasks.reranking.model:Reranker",
    pictures="bert_tf.tasks.reranking.pictures:RankingPictures",
    config=RerankingRun,
    task="bert_tf.tasks.reranking.run:Reranking",
    metrics=("ndcg@10", "mrr@10", "map"),
    head=dataclasses.replace(
        classification.HEAD,
        arguments=("dropout",),
        outputs=1,
        takes=("TextRegressor",),
        sentence_transformers=CROSS_ENCODER,
    ),
    outputs=("order", "scores"),
    lists=(("order", "scores"),),
)
