"""A whole run's configuration: one class for each task family, and the reading of YAML."""

import dataclasses
import glob
import itertools
import json
import os
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self, overload

from bert_tf import yaml_files
from bert_tf.config.data import (
    ClassificationData,
    FinetuningData,
    MultipleChoiceData,
    PretrainingData,
    QuestionAnsweringData,
    TokenClassificationData,
)
from bert_tf.config.model import InitConfig, ModelConfig, TaggerModel, TokenizerConfig
from bert_tf.config.train import FinetuningTrain, PretrainingTrain, TrainConfig
from bert_tf.errors import UserError
from bert_tf.typed import NOT_A_KEY, build, fit, plain
from bert_tf.yaml_files import Tree


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides a run; the subclasses say what their task asks for."""

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationRun(FinetuningRun):
    """A label for a text or a pair of texts."""

    task: Literal["classification"]
    data: ClassificationData


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressionRun(FinetuningRun):
    """A number for a text or a pair of texts."""

    task: Literal["regression"]
    data: ClassificationData


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionAnsweringRun(FinetuningRun):
    """The part of a context that answers a question."""

    task: Literal["question_answering"]
    data: QuestionAnsweringData


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultipleChoiceRun(FinetuningRun):
    """Which of several endings fits."""

    task: Literal["multiple_choice"]
    data: MultipleChoiceData


RUNS: dict[str, type[RunConfig]] = {
    "pretraining": PretrainingRun,
    "classification": ClassificationRun,
    "regression": RegressionRun,
    "question_answering": QuestionAnsweringRun,
    "token_classification": TokenClassificationRun,
    "multiple_choice": MultipleChoiceRun,
}


# What may change between two sittings of a run: it decides none of its numbers, as long as they
# are numbers.
_FREE = (
    "train.checkpoint_minutes",
    "train.checkpoints_kept",
    "train.log_steps",
    "train.skip_nonfinite",
    "train.strategy",
    "train.tpu",
)
# Keys of `train` that a process has one value of.
_NOT_SEARCHED = ("deterministic", "strategy", "tpu")


def load(path: str | os.PathLike, overrides: Sequence[str] = ()) -> RunConfig:
    """The configuration in a YAML file, and in the files it inherits from by `base: other.yaml`.

    Paths start from the folder of the file that names them or, if nothing is there, from the
    working folder; they come out absolute. What is found in neither stays as it is written.

    Args:
        path: the YAML file.
        overrides: settings laid over it, as in ["train.seed=1", "train.learning_rate=[3e-5,5e-5]"].

    Raises:
        UserError: one line with the file, the line and the key that is wrong.
    """
    tree = yaml_files.read(path)
    for setting in overrides:
        tree = yaml_files.read_setting(setting).over(tree)
    kind = _kind(tree)
    tree, lists = _without_lists(tree)
    config = build(kind, tree)
    hints = typing.get_type_hints(type(config.train), include_extras=True)
    search = {}
    for key, values in lists.items():
        keys = ("train", key)
        place = tree.place(keys)
        search[key] = tuple(fit(value, hints[key], keys, place) for value in values)
        for number, value in enumerate(search[key]):
            if value in search[key][:number]:
                raise UserError(f"{place}: train.{key} has {_told(value)} twice; remove one")
    return dataclasses.replace(config, search=search)


@overload
def load_for(
    command: Literal["pretrain", "pretrain-data"],
    path: str | os.PathLike,
    overrides: Sequence[str] = (),
) -> PretrainingRun: ...
@overload
def load_for(
    command: Literal["finetune"], path: str | os.PathLike, overrides: Sequence[str] = ()
) -> FinetuningRun: ...
def load_for(
    command: str, path: str | os.PathLike, overrides: Sequence[str] = ()
) -> PretrainingRun | FinetuningRun:
    """Like `load`, for a configuration whose task is one of `command`.

    Raises:
        UserError: as `load`; the task is one of another command.
    """
    config = load(path, overrides)
    kind = FinetuningRun if command == "finetune" else PretrainingRun
    if not isinstance(config, kind):
        other = "pretrain" if command == "finetune" else "finetune"
        raise UserError(f"{path}: task {config.task} is not for {command}; use bert-tf {other}")
    return config


def difference(old: RunConfig, new: RunConfig) -> list[str]:
    """The keys, such as "train.seed", whose values are not the same in both and have to be.

    What both search may have other values: trials that are done stay what they are.
    """
    return [key for key, _, _ in _changes(old, new)]


def has_moved(old: RunConfig, new: RunConfig) -> bool:
    """Whether something that the old configuration names is where the new one says now."""
    before, after = _flat(old), _flat(new)
    return type(old) is type(new) and any(
        value != after[key] and _is_same(value, after[key]) and os.path.isabs(str(after[key]))
        for key, value in before.items()
    )


def tell_difference(old: RunConfig, new: RunConfig) -> str:
    """What `difference` finds with both values, as in "train.seed (0 there, 1 now)"."""
    return ", ".join(
        f"{key} ({_told(before)} there, {_told(after)} now)"
        for key, before, after in _changes(old, new)
    )


def _changes(old: RunConfig, new: RunConfig) -> list[tuple[str, object, object]]:
    """The keys of `difference`, each with its value in both."""
    if type(old) is not type(new):
        return [("task", old.task, new.task)]
    before, after = _flat(old), _flat(new)
    free = {*_FREE, *(f"train.{key}" for key in old.search.keys() & new.search.keys())}
    return [
        (key, value, after[key])
        for key, value in before.items()
        if key not in free and not _is_same(value, after[key])
    ]


def _is_same(before: object, after: object) -> bool:
    """Whether two values are equal, or paths of one name of which the first leads nowhere now.

    What it led to has moved, or is gone: paths are made absolute where something is found there.
    """
    if isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        return all(map(_is_same, before, after))
    if before == after or not (isinstance(before, str) and isinstance(after, str) and after):
        return before == after
    is_gone = os.path.isabs(before) and not glob.glob(before, recursive=True)
    return is_gone and Path(before).name == Path(after).name


def _flat(config: RunConfig) -> dict[str, object]:
    """Every key with its value, or with its values where they are searched."""
    values: dict[str, object] = {"task": config.task}
    for section in ("data", "tokenizer", "model", "init", "train"):
        for key, value in vars(getattr(config, section)).items():
            values[f"{section}.{key}"] = value
    return values | {f"train.{key}": each for key, each in config.search.items()}


def _told(value: object) -> str:
    """A value as a file has it, in one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _kind(tree: Tree) -> type[RunConfig]:
    """The class of the task that a file names."""
    task = tree.values.get("task")
    if isinstance(task, str) and task in RUNS:
        return RUNS[task]
    given = "is missing" if task is None else f"{str(task)[:40]!r} is not known"
    raise UserError(
        f"{tree.place(('task',))}: the key task {given}; it is one of {', '.join(RUNS)}"
    )


def _without_lists(tree: Tree) -> tuple[Tree, dict[str, list]]:
    """The tree with the first value of every list under `train`, and these lists."""
    train = tree.values.get("train")
    if not isinstance(train, dict):
        return tree, {}
    lists = {key: value for key, value in train.items() if isinstance(value, list)}
    for key, values in lists.items():
        place = tree.place(("train", key))
        if not values:
            raise UserError(f"{place}: train.{key} is an empty list")
        if key in _NOT_SEARCHED:
            raise UserError(
                f"{place}: train.{key} is a list, but all runs of a search have the same; take one "
                "value"
            )
    firsts = {key: values[0] for key, values in lists.items()}
    return Tree(tree.values | {"train": train | firsts}, tree.places), lists
