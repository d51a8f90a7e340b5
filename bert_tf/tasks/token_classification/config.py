"""What a run of token classification may configure."""

import dataclasses
from typing import Literal

from bert_tf.config.data import FinetuningData
from bert_tf.config.kinds import Count
from bert_tf.config.model import ModelConfig
from bert_tf.config.run import FinetuningRun
from bert_tf.config.train import FinetuningTrain
from bert_tf.errors import UserError

# Activations that a tagger on a frozen encoder can read: the rows of the paper's table 7.
Features = Literal[
    "embeddings",
    "second_to_last",
    "last",
    "sum_last_four",
    "concat_last_four",
    "sum_all",
]


@dataclasses.dataclass(frozen=True)
class TaggerModel(ModelConfig):
    """The same, and what tags the words."""

    # Null fine-tunes the encoder. Else it is frozen, and a BiLSTM of two layers reads these of its
    # activations (paper, section 5.3, table 7).
    features: Features | None = None
    # Width of the BiLSTM in each direction (the paper's).
    lstm_units: Count = 768

    def __post_init__(self) -> None:
        if self.features is None and self.lstm_units != TaggerModel.lstm_units:
            raise UserError(
                "model.lstm_units is for the BiLSTM of model.features, which is not set; set it, "
                "or remove model.lstm_units"
            )


@dataclasses.dataclass(frozen=True)
class TokenClassificationData(FinetuningData):
    """Words with tags: see `bert_tf.tasks.token_classification`.

    Formats: conll, columns of words and tags (see `bert_tf.tasks.token_classification.conll`), and
    tfds, whose splits are then the names of the files: by default train and dev, as conll2003 has
    them, and a test split only if it is named. A test file may be one column of words alone.
    """

    # Columns of the words and of the tags, counted from 0; -1 is the last, -2 the one before.
    word_column: int = 0
    tag_column: int = -1
    # Take a tag that continues no entity for the beginning of one, as conlleval does; false refuses
    # a file with tags that break its scheme.
    lenient_tags: bool = False
    # Read whole documents, as -DOCSTART- lines mark them: a word sees the sentences around its own,
    # as many as train.max_length has room for (the paper's "maximal document context").
    document_context: bool = False
    # What is too long is cut into windows that start so many pieces apart; null is half of
    # train.max_length.
    stride: Count | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenClassificationRun(FinetuningRun):
    """A tag for each word."""

    task: Literal["token_classification"]
    data: TokenClassificationData
    model: TaggerModel = TaggerModel()

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("frozen_layers", "layer_decay"):
            if self.model.features and getattr(self.train, key) != getattr(FinetuningTrain, key):
                raise UserError(
                    f"train.{key} is for fine-tuning, but model.features freezes the encoder; "
                    f"remove train.{key}"
                )
