"""What a whole run may configure; each task family extends `FinetuningRun`."""

import dataclasses
import itertools
from typing import Literal, Self

from bert_tf.config import yaml_files
from bert_tf.config.data import FinetuningData, PretrainingData
from bert_tf.config.model import InitConfig, ModelConfig, TokenizerConfig
from bert_tf.config.train import FinetuningTrain, PretrainingTrain, TrainConfig
from bert_tf.config.typed import NOT_A_KEY, plain
from bert_tf.errors import UserError

# The only task outside the task families: all of them start from it.
PRETRAINING = "pretraining"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides a run; the subclasses say what their task needs."""

    task: str
    data: PretrainingData | FinetuningData
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    init: InitConfig = InitConfig()
    train: TrainConfig
    # The keys of `train` that are lists in the file, with their values: a search over all of their
    # combinations. `train` itself holds the first value of each.
    search: dict[str, tuple] = dataclasses.field(default_factory=dict, metadata=NOT_A_KEY)

    def __post_init__(self) -> None:
        if self.tokenizer.vocab is None and self.init.checkpoint is None:
            raise UserError("which vocabulary? set tokenizer.vocab, or init.checkpoint for its own")
        sizes = {"hidden_size", "num_hidden_layers", "num_attention_heads"}
        if not (self.model.preset or self.init.checkpoint or sizes <= set(self.model.changes())):
            raise UserError(
                "which model? set model.preset (such as bert-base-uncased), init.checkpoint, or "
                "model.hidden_size, model.num_hidden_layers and model.num_attention_heads"
            )

    def trials(self) -> list[Self]:
        """A search as the single runs it is made of, the last key changing fastest.

        A configuration without a search is its own only trial.
        """
        combinations = itertools.product(*self.search.values())
        trains = [
            dataclasses.replace(self.train, **dict(zip(self.search, values, strict=True)))
            for values in combinations
        ]
        return [dataclasses.replace(self, train=train, search={}) for train in trains]

    def to_yaml(self) -> str:
        """The configuration with every default written out; `load` makes the same of it."""
        values = plain(self)
        values["train"] |= {key: list(each) for key, each in self.search.items()}
        return yaml_files.write(values)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingRun(RunConfig):
    """Masked language modelling, with or without next sentence prediction."""

    task: Literal["pretraining"]
    data: PretrainingData
    train: PretrainingTrain

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data.format == "tfrecord" and self.train.long_length is not None:
            raise UserError(
                "TFRecords have examples of one length; set train.long_length to null, or train "
                "on text or token_shards"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningRun(RunConfig):
    """What all fine-tuning has in common."""

    data: FinetuningData
    train: FinetuningTrain
