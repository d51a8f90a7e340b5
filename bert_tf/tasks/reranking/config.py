"""What a run of re-ranking may configure."""

from typing import Annotated, Literal

from pydantic import Field

from bert_tf.config.data import FinetuningData
from bert_tf.config.model import ModelConfig
from bert_tf.config.run import FinetuningRun
from bert_tf.config.section import Section


class RerankingData(FinetuningData):
    """Queries with passages and their relevance: see `bert_tf.tasks.reranking`.

    Formats: tsv and csv with the columns query, passage and relevance; jsonl, the same, or a list
    of passages with a list of relevances, or positive and negatives; triples, MS MARCO's TSV of
    query, positive and negative; beir, a folder with corpus.jsonl, queries.jsonl and qrels. Without
    names the files are train.tsv and dev.tsv, and test.tsv if it is there, with the format's
    ending; those of beir are in qrels.
    """

    negatives: Annotated[int, Field(ge=0)] = 8
    """Format beir: passages of the corpus that are drawn for each query as not relevant, besides
    those that qrels judges.
    """
    negatives_seed: int = 0
    """Decides which these are."""


class RankingModel(ModelConfig):
    """Sizes as `ModelConfig` has them, and what a score is."""

    activation: Literal["sigmoid", "identity"] | None = None
    """What makes scores of logits; null is that of the initial checkpoint if it is a re-ranker, and
    otherwise sigmoid.
    """


class RankingLossConfig(Section):
    """What is learned: see `bert_tf.tasks.reranking.losses`."""

    name: (
        Literal["binary_cross_entropy", "mean_squared_error", "list_net", "lambda_loss"] | None
    ) = None
    """Null: list_net where a row has a list of passages, otherwise binary_cross_entropy, for a
    relevance from 0 to 1. mean_squared_error learns the scores of a teacher. For list_net and
    lambda_loss the rows of the same query are one list.
    """


class RerankingRun(FinetuningRun):
    """Which passages answer a query best."""

    task: Literal["reranking"]
    data: RerankingData
    model: RankingModel = RankingModel()
    loss: RankingLossConfig = RankingLossConfig()
