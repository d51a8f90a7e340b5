"""The section `distillation`: what a student learns from its teacher."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bert_tf.config.kinds import Count, FilePath, FilePaths, Positive
from bert_tf.config.section import Section

Weight = Annotated[float, Field(ge=0)]
Place = Annotated[int, Field(ge=0)]
Places = Annotated[tuple[Place, ...], Field(min_length=1)]


class DistillationLosses(Section):
    """The losses of a student and their weights; a weight of 0 leaves a loss out."""

    temperature: Positive = 2.0
    """What logits are divided by before the softmax, of both models (Hinton et al. 2015)."""
    hard: Weight = 0.5
    """Weight of the task's own loss, where there are labels."""
    soft: Weight = 0.5
    """Weight of the teacher's outputs: temperature^2 times the divergence of probabilities, or the
    mean squared error of numbers and vectors.
    """
    hidden: Weight = 0.0
    """Weight of the mean squared error of embeddings and hidden states, each layer of the student
    with one of the teacher, evenly spread (TinyBERT, Jiao et al. 2020).
    """
    attention: Weight = 0.0
    """Weight of the mean squared error of attention before the softmax, of the same layers
    (TinyBERT). Both models need as many heads.
    """
    relations: Weight = 0.0
    """Weight of the relations among queries, keys and values of the student's last layer (MiniLMv2,
    Wang et al. 2021).
    """
    relation_heads: Count | None = None
    """Into how many heads these are cut; null: the teacher's attention heads."""
    relation_layer: Place | None = None
    """The layer of the teacher whose relations are learned, counted from 0; null: the last."""

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
    """A run folder, a checkpoint of any format with its head or a name on the Hub: a trained model
    of the same task. Where neither init.checkpoint nor sizes under `model` other than
    num_hidden_layers are set, the student starts from layers of the teacher.
    """
    layers: Literal["spread", "first", "last"] | Places = "spread"
    """Which layers the student starts from: every k-th up to the last, the first, the last, or a
    list of their numbers, counted from 0.
    """
    unlabelled: FilePath | FilePaths | None = None
    """Files of more rows to learn from the teacher alone, in the format of the data; labels in them
    are not used.
    """
