"""What a run of classification may configure."""

from typing import Annotated, Literal

from pydantic import Field

from bert_tf.config.kinds import Positive
from bert_tf.config.run import FinetuningRun
from bert_tf.tasks.texts.config import TextData

Weights = Annotated[dict[str, Positive], Field(min_length=1)]


class ClassificationData(TextData):
    """Texts as `TextData` has them, and what each class counts."""

    class_weights: Literal["balanced"] | Weights | None = None
    """How much rows of a class count in the loss: balanced gives each class the same weight,
    however many rows it has; or a weight for some labels, where others have 1. Only their
    proportions matter: rows weigh 1 on average.
    """


class ClassificationRun(FinetuningRun):
    """A label for a text or a pair of texts."""

    task: Literal["classification"]
    data: ClassificationData
