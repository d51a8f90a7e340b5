"""What a run does, as typed and frozen configuration read from YAML.

Every key that a file may set is a field of a class, with its meaning and its default: section by
section in `data`, `model` and `train` here, and in `config.py` of each task family. Defaults are
those of the paper or of google-research's scripts, unless the comment says why not.
"""

from bert_tf.config.changes import difference, has_moved, tell_difference
from bert_tf.config.data import FinetuningData, PretrainingData
from bert_tf.config.reading import load, load_for
from bert_tf.config.run import PRETRAINING, FinetuningRun, PretrainingRun, RunConfig
from bert_tf.config.train import FinetuningTrain, PretrainingTrain, TrainConfig

__all__ = [
    "PRETRAINING",
    "FinetuningData",
    "FinetuningRun",
    "FinetuningTrain",
    "PretrainingData",
    "PretrainingRun",
    "PretrainingTrain",
    "RunConfig",
    "TrainConfig",
    "difference",
    "has_moved",
    "load",
    "load_for",
    "tell_difference",
]
