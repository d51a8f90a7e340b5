"""Reading a configuration from a YAML file."""

import os
from collections.abc import Sequence
from typing import Any, Literal, overload

from pydantic import ValidationError

from bert_tf.config import yaml_files
from bert_tf.config.changes import as_written
from bert_tf.config.refusals import refusal
from bert_tf.config.run import PRETRAINING, FinetuningRun, PretrainingRun, RunConfig
from bert_tf.config.train import NOT_SEARCHED
from bert_tf.config.yaml_files import Tree
from bert_tf.errors import UserError
from bert_tf.tasks import registry


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
    try:
        return _with_search(kind, tree)
    except ValidationError as error:
        raise refusal(error, kind, tree) from None


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


def kinds() -> dict[str, type[RunConfig]]:
    """The class of each task that has runs, families of other packages included."""
    families = {family.name: family.config for family in registry.families() if family.config}
    return {PRETRAINING: PretrainingRun, **families}


def _kind(tree: Tree) -> type[RunConfig]:
    """The class of the task that a file names."""
    task, known = tree.values.get("task"), kinds()
    if isinstance(task, str) and task in known:
        return known[task]
    given = "is missing" if task is None else f"{str(task)[:40]!r} is not known"
    raise UserError(
        f"{tree.place(('task',))}: the key task {given}; it is one of {', '.join(known)}"
    )


def _with_search(kind: type[RunConfig], tree: Tree) -> RunConfig:
    """The configuration with the first value of every list under `train`, and all as its search."""
    train = tree.values.get("train")
    train = train if isinstance(train, dict) else {}
    lists = {key: values for key, values in train.items() if isinstance(values, list)}
    for key, values in lists.items():
        place = tree.place(("train", key))
        if not values:
            raise UserError(f"{place}: train.{key} is an empty list")
        if key in NOT_SEARCHED:
            raise UserError(
                f"{place}: train.{key} is a list, but all runs of a search have the same; take one "
                "value"
            )

    def checked(chosen: dict[str, Any]) -> RunConfig:
        return kind.model_validate(tree.values | ({"train": train | chosen} if chosen else {}))

    firsts = {key: values[0] for key, values in lists.items()}
    config, search = checked(firsts), {}
    for key, values in lists.items():
        search[key] = tuple(getattr(checked(firsts | {key: each}).train, key) for each in values)
        for number, value in enumerate(search[key]):
            if value in search[key][:number]:
                place = tree.place(("train", key))
                raise UserError(f"{place}: train.{key} has {as_written(value)} twice; remove one")
    config = config.searching(search)
    config.trials()  # refuses values that do not go together
    return config
