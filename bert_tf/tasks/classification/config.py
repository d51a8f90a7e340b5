"""What a run of classification may configure."""

import dataclasses
from typing import Literal

from bert_tf.config.kinds import Positive
from bert_tf.config.run import FinetuningRun
from bert_tf.tasks.texts.config import TextData


@dataclasses.dataclass(frozen=True)
class ClassificationData(TextData):
    """The same, and what classes count."""

    # How much rows of a class count in the loss: balanced gives each class the same weight, however
    # many rows it has; or a weight for some labels, where others have 1. Only their proportions
    # matter: rows weigh 1 on average.
    class_weights: Literal["balanced"] | dict[str, Positive] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationRun(FinetuningRun):
    """A label for a text or a pair of texts."""

    task: Literal["classification"]
    data: ClassificationData
