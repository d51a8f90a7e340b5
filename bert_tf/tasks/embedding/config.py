"""What a run of an embedder may configure."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bert_tf.checkpoints.embedder import Pooling
from bert_tf.config.data import FinetuningData
from bert_tf.config.kinds import Count, Positive
from bert_tf.config.model import ModelConfig
from bert_tf.config.run import FinetuningRun
from bert_tf.config.section import Section
from bert_tf.config.train import FinetuningTrain

# The losses that each option is for.
_OPTIONS = {
    "scale": ("multiple_negatives_ranking", "cosent"),
    "symmetric": ("multiple_negatives_ranking",),
    "margin": ("online_contrastive", "batch_all_triplet"),
}


class EmbedderModel(ModelConfig):
    """Sizes as `ModelConfig` has them, and how a vector is made of the last layer."""

    pooling: Pooling | Annotated[tuple[Pooling, ...], Field(min_length=1)] | None = None
    """One of these, or several that are put side by side; null is that of the initial checkpoint
    if it is an embedder, and otherwise mean. See `bert_tf.tasks.embedding.pooling`.
    """
    normalize: bool | None = None
    """Divide each vector by its length; null does what the initial checkpoint does."""


class EmbeddingData(FinetuningData):
    """Texts, pairs, or groups of texts: see `bert_tf.tasks.embedding.data`.

    Formats: tsv, csv and jsonl, with columns sentence1, sentence2 and score (or label); anchor (or
    query), positive, and negative (in jsonl also negatives, a list); or text, perhaps with label.
    sts-b, GLUE's files or the original ones, whose scores are divided by 5; nli, GLUE's files of
    MNLI or SNLI, as premise, entailed and contradicting hypothesis; triples, MS MARCO's TSV of
    query, passage and another passage without a header; beir, a folder in BEIR's form, whose files
    are those of the judgements.
    """


class LossConfig(Section):
    """What is learned: see `bert_tf.tasks.embedding.losses`."""

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
    """Null is multiple_negatives_ranking; of pairs with scores cosent, and of texts with labels
    batch_all_triplet.
    """
    scale: Positive | None = None
    """Multiplies the cosines; null is 20."""
    symmetric: bool = False
    """Each positive has to find its anchor too."""
    margin: Positive | None = None
    """Null is 0.5 of online_contrastive and 5 of batch_all_triplet."""
    matryoshka: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    """Learn with the first so many numbers of the vectors too, for each of these widths; that of
    the whole vectors should be one of them.
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
    """As `FinetuningTrain`. An accumulated batch is encoded twice, and its loss stays the same."""

    group_by_length: bool = False
    """Fill each batch with rows of similar length. The lengths of texts then say nothing about
    which of them belong together.
    """


class EmbeddingRun(FinetuningRun):
    """A vector for each text."""

    task: Literal["embedding"]
    data: EmbeddingData
    model: EmbedderModel = EmbedderModel()
    loss: LossConfig = LossConfig()
    train: EmbeddingTrain
