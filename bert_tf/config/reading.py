"""Reading a configuration from a YAML file."""

import dataclasses
import os
import typing
from collections.abc import Sequence
from typing import Literal, overload

from bert_tf.config import yaml_files
from bert_tf.config.changes import as_written
from bert_tf.config.run import PRETRAINING, FinetuningRun, PretrainingRun, RunConfig
from bert_tf.config.typed import build, fit
from bert_tf.config.yaml_files import Tree
from bert_tf.errors import UserError
from bert_tf.tasks import registry

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
                raise UserError(f"{place}: train.{key} has {as_written(value)} twice; remove one")
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


def _kind(tree: Tree) -> type[RunConfig]:
    """The class of the task that a file names."""
    task = tree.values.get("task")
    if task == PRETRAINING:
        return PretrainingRun
    known = {family.name: family.config for family in registry.families() if family.config}
    if isinstance(task, str) and task in known:
        return known[task]
    given = "is missing" if task is None else f"{str(task)[:40]!r} is not known"
    names = ", ".join((PRETRAINING, *known))
    raise UserError(f"{tree.place(('task',))}: the key task {given}; it is one of {names}")


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
