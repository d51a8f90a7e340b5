"""A vector for a text."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bert_tf.checkpoints.embedder import Pooling
from bert_tf.checkpoints.heads import EMBEDDER, Head
from bert_tf.config.data import FinetuningData
from bert_tf.config.model import PooledWindowsModel
from bert_tf.config.run import FinetuningRun
from bert_tf.config.section import Count, Positive, Section
from bert_tf.config.train import FinetuningTrain
from bert_tf.tasks.family import TaskFamily

# The losses to which each option applies.
_OPTIONS = {
    "scale": ("multiple_negatives_ranking", "cosent"),
    "symmetric": ("multiple_negatives_ranking",),
    "margin": ("online_contrastive", "batch_all_triplet"),
}


class EmbedderModel(PooledWindowsModel):
    """As `PooledWindowsModel`, and how a vector is computed from the last layer."""

    pooling: Pooling | Annotated[tuple[Pooling, ...], Field(min_length=1)] | None = None
    """How the vector of a text is computed from the last layer; `pooled` is the pooler's output. A
    list concatenates several vectors. null is the pooling of the initial checkpoint if it is an
    embedder, and otherwise `mean`.
    """
    normalize: bool | None = None
    """Divide each vector by its length; null does what the initial checkpoint does."""


class EmbeddingData(FinetuningData):
    """Texts, pairs, or groups of texts: see `bert_tf.tasks.embedding.data`."""

    format: str
    """`tsv`, `csv`, `jsonl`, `parquet` or `datasets`, with columns `sentence1`, `sentence2` and
    `score` (or `label`); `anchor` (or `query`) and `positive`, or `question` (or `query`) and
    `answer`, each with `negative` or not (in the last three also `negatives`, a list); or `text`,
    with `label` or not. `sts-b`: GLUE's files or the original ones, whose scores are divided by 5.
    `nli`: GLUE's files of MNLI or SNLI: premise, entailed hypothesis, contradicting hypothesis.
    `triples`: MS MARCO's TSV of query, relevant passage and another passage, without a header.
    `beir`: a folder in BEIR's form, with pairs in `qrels/train.tsv`; the whole corpus is searched.
    """


class LossConfig(Section):
    """The loss: see `bert_tf.tasks.embedding.losses`."""

    name: (
        Literal[
            "multiple_negatives_ranking",
            "cosent",
            "cosine_regression",
            "online_contrastive",
            "batch_all_triplet",
        ]
        | None
    ) = None
    """null is cosent for pairs with scores, batch_all_triplet for texts with labels, and
    multiple_negatives_ranking for everything else.
    """
    scale: Positive | None = None
    """For multiple_negatives_ranking and cosent: the cosines are multiplied by this; null is 20."""
    symmetric: bool = False
    """For multiple_negatives_ranking: each positive must find its anchor too."""
    margin: Positive | None = None
    """null is 0.5 for online_contrastive and 5 for batch_all_triplet."""
    matryoshka: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    """Also learn with vectors that are cut to each of these widths. The width of the whole vectors
    should be one of them.
    """

    @model_validator(mode="after")
    def _options_have_a_use(self) -> Self:
        for key, names in _OPTIONS.items():
            if not self.is_default(key) and self.name not in names:
                raise ValueError(
                    f"loss.{key} is for the loss {' or '.join(names)}; set loss.name, or remove "
                    f"loss.{key}"
                )
        return self


class EmbeddingTrain(FinetuningTrain):
    """As `FinetuningTrain`, with defaults for vectors."""

    group_by_length: bool = False
    """Fill each batch with rows of similar length. By default rows are drawn at random, so that the
    lengths of texts do not reveal which of them belong together.
    """


class EmbeddingRun(FinetuningRun):
    """A vector for each text."""

    task: Literal["embedding"]
    data: EmbeddingData
    """Texts, pairs of texts, or an anchor with a positive and negatives. Pairs with scores are
    measured by `spearman`, everything else by `ndcg@10`.
    """
    model: EmbedderModel = EmbedderModel()
    """The sizes of the encoder, and how a vector is computed from the last layer."""
    loss: LossConfig = LossConfig()
    """The loss on texts that belong together."""
    train: EmbeddingTrain
    """How the weights are trained. A list of values for a key is a search over them, except for
    train.deterministic, train.strategy and train.tpu.
    """


FAMILY = TaskFamily(
    name="embedding",
    title="Embedding",
    model="bert_tf.tasks.embedding.model:TextEmbedder",
    pictures="bert_tf.tasks.embedding.pictures:EmbeddingPictures",
    config=EmbeddingRun,
    task="bert_tf.tasks.embedding.run:EmbeddingTask",
    metrics=("spearman", "ndcg@10"),
    head=Head(sentence_transformers=EMBEDDER),
    outputs=("embedding",),
)
