"""What a run of regression may configure."""

from typing import Literal

from bert_tf.config.run import FinetuningRun
from bert_tf.tasks.texts.config import TextData


class RegressionRun(FinetuningRun):
    """A number for a text or a pair of texts."""

    task: Literal["regression"]
    data: TextData
    """One text, or a pair of texts, with a number."""
