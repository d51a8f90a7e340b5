"""The section `distillation`: what a student learns from its teacher."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bert_tf.config.section import Count, FilePath, FilePaths, Natural, Positive, Section, Weight

Places = Annotated[tuple[Natural, ...], Field(min_length=1)]


class DistillationLosses(Section):
    """The losses of a student and their weights; a weight of 0 leaves a loss out."""

    temperature: Positive = 2.0
    """The logits of both models are divided by this before the softmax (Hinton et al. 2015)."""
    hard: Weight = 0.5
    """Weight of the task's own loss, for rows that have labels."""
    soft: Weight = 0.5
    """Weight of the loss on the teacher's outputs: temperature^2 times the divergence of the
    probabilities, or the mean squared error of numbers and vectors."""
    hidden: Weight = 0.0
    """Weight of the mean squared error of the embeddings and hidden states. Each layer of the
    student is compared with one of the teacher, evenly spread (TinyBERT, Jiao et al. 2020)."""
    attention: Weight = 0.0
    """Weight of the mean squared error of the attention scores before the softmax, of the same
    layers (TinyBERT). Both models must have the same number of heads."""
    relations: Weight = 0.0
    """Weight of the loss on the relations among queries, keys and values of the student's last
    layer (MiniLMv2, Wang et al. 2021)."""
    relation_heads: Count | None = None
    """Number of heads that the relations are divided into; null is the teacher's number of
    attention heads."""
    relation_layer: Natural | None = None
    """The teacher's layer whose relations are learned, counted from 0; null is the last."""

    @model_validator(mode="after")
    def _something_is_learned(self) -> Self:
        if not (self.soft or self.hidden or self.attention or self.relations):
            raise ValueError(
                "nothing is learned from the teacher: soft, hidden, attention and relations are "
                "all 0; give one of them a weight"
            )
        for key in ("relation_heads", "relation_layer"):
            if not self.relations and not self.is_default(key):
                raise ValueError(f"{key} is for relations, whose weight is 0; remove {key}")
        return self


class DistillationConfig(DistillationLosses):
    """The teacher of a run, and what is learned from it."""

    teacher: FilePath
    """A trained model of the same task: a run folder, a checkpoint of any format with its head, or
    a name on the Hugging Face Hub. If neither init.checkpoint nor model.preset nor
    model.hidden_size is set, the student starts from layers of the teacher, as many as
    model.num_hidden_layers."""
    layers: Literal["spread", "first", "last"] | Places = "spread"
    """Which layers the student starts from: every k-th up to the last (`spread`), the `first`, the
    `last`, or a list of their numbers, counted from 0."""
    unlabelled: FilePath | FilePaths | None = None
    """Files of more rows to learn from the teacher alone, in the format of the data. Their labels
    are not used. They count in epochs like all rows."""
