"""What a run does, as typed and frozen configuration read from YAML.

Every key that a file may set is a field of a class here, with its meaning and its default, section
by section in `data`, `model` and `train`. Defaults are those of the paper or of google-research's
scripts, unless the comment says why not.
"""

from bert_tf.config.data import (
    ClassificationData,
    FinetuningData,
    MultipleChoiceData,
    PretrainingData,
    QuestionAnsweringData,
    TokenClassificationData,
)
from bert_tf.config.model import TaggerModel
from bert_tf.config.run import (
    FinetuningRun,
    PretrainingRun,
    RunConfig,
    TokenClassificationRun,
    difference,
    has_moved,
    load,
    load_for,
    tell_difference,
)
from bert_tf.config.train import FinetuningTrain, PretrainingTrain, TrainConfig

__all__ = [
    "ClassificationData",
    "FinetuningData",
    "FinetuningRun",
    "FinetuningTrain",
    "MultipleChoiceData",
    "PretrainingData",
    "PretrainingRun",
    "PretrainingTrain",
    "QuestionAnsweringData",
    "RunConfig",
    "TaggerModel",
    "TokenClassificationData",
    "TokenClassificationRun",
    "TrainConfig",
    "difference",
    "has_moved",
    "load",
    "load_for",
    "tell_difference",
]
