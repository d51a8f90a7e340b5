"""The configuration of a whole run; each task family extends `FinetuningRun`."""

import itertools
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import PrivateAttr, model_validator
from pydantic_core import to_jsonable_python

from bert_tf.config import yaml_files
from bert_tf.config.data import FinetuningData, PretrainingData
from bert_tf.config.distillation import DistillationConfig
from bert_tf.config.model import InitConfig, ModelConfig, TokenizerConfig
from bert_tf.config.section import Section
from bert_tf.config.train import FinetuningTrain, PretrainingTrain, Range, SearchConfig, TrainConfig

PRETRAINING = "pretraining"  # the only task outside the task families: all of them start from it
FORMAT = 1  # the version of a run folder's form, which its configuration states


def some_of(values: Any) -> Any:
    """The values of a list, or the ends of a range."""
    return (values.low, values.high) if isinstance(values, Range) else values


class RunConfig(Section):
    """Everything that decides a run; the subclasses say what their task needs."""

    task: str
    data: PretrainingData | FinetuningData
    tokenizer: TokenizerConfig = TokenizerConfig()
    """How text becomes tokens. A run needs a vocabulary: this section's, or that of the checkpoint
    it starts from."""
    model: ModelConfig = ModelConfig()
    """The sizes of the encoder, under the names of google-research's `bert_config.json`. null takes
    the value of the preset or of the checkpoint. A run needs a checkpoint, a preset, or
    model.hidden_size, model.num_hidden_layers and model.num_attention_heads. The vocabulary decides
    its own size."""
    init: InitConfig = InitConfig()
    """The checkpoint that the weights start from."""
    train: TrainConfig
    _search: dict[str, tuple | Range] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _names_vocabulary_and_model(self) -> Self:
        if self.tokenizer.vocab is None and self.source is None:
            raise ValueError(
                "no vocabulary is given; set tokenizer.vocab, or init.checkpoint, which has one"
            )
        sizes = {"hidden_size", "num_hidden_layers", "num_attention_heads"}
        if not (self.model.preset or self.source or sizes <= set(self.model.changes())):
            raise ValueError(
                "no model is given; set model.preset (such as bert-base-uncased), init.checkpoint, "
                "or model.hidden_size, model.num_hidden_layers and model.num_attention_heads"
            )
        return self

    @property
    def source(self) -> str | None:
        """The checkpoint that the weights start from, and the vocabulary if none is set."""
        return self.init.checkpoint

    @property
    def searched(self) -> dict[str, tuple | Range]:
        """The lists and ranges of the file under `train`, which holds the first value of each."""
        return self._search

    def searching(self, search: dict[str, tuple | Range]) -> Self:
        """This configuration with another search."""
        copy = self.model_copy()
        copy._search = search
        return copy

    def trials(self) -> list[Self]:
        """A search as single runs, the last key changing fastest; a range counts as its ends."""
        values = itertools.product(*map(some_of, self.searched.values()))
        return [self.trial(dict(zip(self.searched, each, strict=True))) for each in values]

    def trial(self, values: Mapping[str, Any]) -> Self:
        """One run of a search; pydantic's ValidationError if the values do not go together."""
        train = type(self.train).model_validate(dict(self.train) | dict(values))
        update = {"train": train, **({"search": None} if hasattr(self, "search") else {})}
        return self.model_copy(update=update).searching({})

    def to_yaml(self) -> str:
        """The configuration with every default written out; `load_config` reads it back."""
        values = {"format": FORMAT} | self.model_dump(mode="json")
        values["train"] |= to_jsonable_python(self.searched)
        return yaml_files.write(values)


class PretrainingRun(RunConfig):
    """Masked language modelling, with or without next sentence prediction."""

    task: Literal["pretraining"]
    data: PretrainingData
    """The text to pre-train on, and what is predicted in it."""
    train: PretrainingTrain
    """How the encoder is pre-trained. Long sequences cost much and teach little except the late
    positions. So the paper trains nine tenths of the steps with short ones (appendix A.2):
    train.max_length 128, train.long_length 512."""

    @model_validator(mode="after")
    def _records_have_one_length(self) -> Self:
        if self.data.format == "tfrecord" and self.train.long_length is not None:
            raise ValueError(
                "TFRecords have examples of one length; set train.long_length to null, or train "
                "on text or token_shards"
            )
        return self


class FinetuningRun(RunConfig):
    """What all fine-tuning has in common."""

    data: FinetuningData
    train: FinetuningTrain
    """How the weights are trained. A list of values for a key is a search over them, except for
    train.deterministic, train.strategy and train.tpu."""
    search: SearchConfig | None = None
    """Search with Optuna instead of trying all combinations. A key of `train` may then be a range,
    such as `{low: 1e-5, high: 1e-4, log: true}`; lists are choices."""
    distillation: DistillationConfig | None = None
    """A teacher, from which the model learns in addition to the labels."""

    @model_validator(mode="after")
    def _layers_are_the_teachers(self) -> Self:
        distillation = self.distillation
        if distillation is None or self.starts_from_teacher:
            return self
        if not distillation.is_default("layers"):
            raise ValueError(
                "distillation.layers is for a student that starts from its teacher; remove it, or "
                "else init.checkpoint, model.preset and model.hidden_size"
            )
        return self

    @property
    def starts_from_teacher(self) -> bool:
        """Whether the weights start from layers of the teacher."""
        own = self.init.checkpoint or self.model.preset or self.model.hidden_size
        return self.distillation is not None and not own

    @property
    def source(self) -> str | None:
        if self.distillation is not None and self.starts_from_teacher:
            return self.distillation.teacher
        return self.init.checkpoint


class CalibratedRun(FinetuningRun):
    """A fine-tuning whose probabilities can be calibrated."""

    calibrate: bool = False
    """After training, fit a temperature on the dev data by which logits are divided (Guo et al.
    2017), so that probabilities match how often answers are right. Training and answers stay the
    same. `metrics.json` then has the temperature, and the calibration error before and after."""
