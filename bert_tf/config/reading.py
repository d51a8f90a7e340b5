"""Reading a configuration from a YAML file."""

import itertools
import os
from collections.abc import Sequence
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from bert_tf.config import yaml_files
from bert_tf.config.changes import as_written
from bert_tf.config.refusals import mistake
from bert_tf.config.run import FORMAT, PRETRAINING, PretrainingRun, RunConfig, some_of
from bert_tf.config.section import FilePath
from bert_tf.config.train import LISTS, NOT_SEARCHED, Range
from bert_tf.config.yaml_files import Tree
from bert_tf.dependencies import optional
from bert_tf.errors import UserError
from bert_tf.io.remote import local_path
from bert_tf.tasks import registry

Kind = TypeVar("Kind", bound=RunConfig)
DISTILLATION = "distillation"  # as a file's task, it means the teacher's task


def load_config(path: str | os.PathLike, overrides: Sequence[str] = ()) -> RunConfig:
    """The configuration in a YAML file, and in the files it inherits from by `base: other.yaml`.

    Paths start from the folder of the file that names them or, if nothing is there, from the
    working folder; they become absolute. A path that is in neither folder stays as it is.

    Args:
        path: the YAML file, or the name of an experiment: `glue/cola` is
            `experiments/glue/cola.yaml`, also of an installed bert_tf. A file at that path has
            precedence.
        overrides: settings laid over it, as in ["train.seed=1", "train.learning_rate=[3e-5,5e-5]"].

    Raises:
        UserError: one line with the file, the line and the key that is wrong.
    """
    return config_of(yaml_files.read(yaml_files.find(path)), overrides)


def config_of(tree: Tree, overrides: Sequence[str] = ()) -> RunConfig:
    """Like `load_config`, for keys that were already read."""
    for setting in overrides:
        tree = yaml_files.read_setting(setting).over(tree)
    written = tree.values.pop("format", FORMAT)
    if written != FORMAT:
        raise UserError(
            f"{tree.place(('format',))}: the configuration has the format {written!r}, not "
            f"{FORMAT}; open it with the version of bert_tf that wrote it, or update bert_tf"
        )
    kind = _kind(tree)
    lists, singles = _searched(tree), [tree.values]
    if lists:
        singles = [
            tree.values | {"train": tree.values["train"] | dict(zip(lists, each, strict=True))}
            for each in itertools.product(*map(some_of, lists.values()))
        ]
    try:
        trials = [kind.model_validate(values) for values in singles]
    except ValidationError as error:
        keys, said = mistake(error, kind, tree.values)
        raise UserError(f"{tree.place(keys)}: {said}") from None
    if tree.values.get("search") is not None and not lists:
        raise UserError(
            f"{tree.place(('search',))}: search has nothing to vary; give a key of train a list, "
            "or a range such as {low: 1e-5, high: 1e-4, log: true}"
        )
    searched: dict[str, tuple | Range] = {}
    for key, given in lists.items():
        every = [getattr(trial.train, key) for trial in trials]
        found = tuple(each for n, each in enumerate(every) if each not in every[:n])
        searched[key] = found
        if isinstance(given, Range):  # its numbers have the type of the key
            searched[key] = given.model_copy(update={"low": found[0], "high": found[1]})
            if isinstance(found[0], int) and isinstance(given.step, float):
                place = tree.place(("train", key, "step"))
                raise UserError(f"{place}: train.{key}.step must be a whole number")
    return trials[0].searching(searched)


def load_config_for(
    command: str, kind: type[Kind], path: str | os.PathLike, overrides: Sequence[str] = ()
) -> Kind:
    """Like `load_config`, for a command that takes configurations of one kind."""
    config = load_config(path, overrides)
    if not isinstance(config, kind):
        other = "finetune" if issubclass(kind, PretrainingRun) else "pretrain"
        raise UserError(
            f"{path}: bert-tf {command} cannot run task {config.task}; use bert-tf {other}"
        )
    if command == "finetune" and getattr(config, "search", None) is not None:
        place = yaml_files.read(yaml_files.find(path)).place(("search",))
        optional("optuna", "optuna", f"{place}: search")
    return config


def kinds() -> dict[str, type[RunConfig]]:
    """The class of each task that has runs, families of other packages included."""
    families = {family.name: family.config for family in registry.families() if family.config}
    return {PRETRAINING: PretrainingRun, **families}


def _kind(tree: Tree) -> type[RunConfig]:
    task, known = tree.values.get("task"), kinds()
    if task == DISTILLATION:
        task = tree.values["task"] = _task_of_teacher(tree)
    if isinstance(task, str) and task in known:
        return known[task]
    given = "is missing" if task is None else f"{str(task)[:40]!r} is not known"
    raise UserError(
        f"{tree.place(('task',))}: the key task {given}; set it to one of {', '.join(known)}"
    )


def _task_of_teacher(tree: Tree) -> str:
    section = tree.values.get(DISTILLATION)
    teacher = section.get("teacher") if isinstance(section, dict) else None
    place = tree.place(("task",))
    if not isinstance(teacher, str):
        raise UserError(f"{place}: task distillation requires a teacher; set distillation.teacher")
    from bert_tf.checkpoints import reading  # imports TensorFlow
    from bert_tf.tasks import keras_files

    path = TypeAdapter(FilePath).validate_python(teacher)
    if path.endswith(keras_files.SUFFIX):
        model = type(keras_files.read(local_path(path))).__name__
    else:
        model = reading.find(path).description.model
    family = registry.family_of(model)
    if family is None or family.config is None:
        raise UserError(
            f"{tree.place((DISTILLATION, 'teacher'))}: {path} was not fine-tuned for a task; name "
            "a fine-tuned model"
        )
    return family.name


def _searched(tree: Tree) -> dict[str, list | Range]:
    """The keys of `train` that are lists of values, or ranges."""
    train, is_grid = tree.values.get("train"), tree.values.get("search") is None
    items = train.items() if isinstance(train, dict) else ()
    found: dict[str, list | Range] = {}
    for key, values in items:
        name = f"{tree.place(('train', key))}: train.{key}"
        if isinstance(values, dict) and values.keys() & {"low", "high"}:
            if is_grid or key in NOT_SEARCHED:
                raise UserError(
                    f"{name} is a range, which requires the section search and a key that a "
                    "search can vary; add the section, or give one value"
                )
            try:
                found[key] = Range.model_validate(values)
            except ValidationError as error:
                keys, said = mistake(error, Range, values, ("train", key))
                said = said if "train." in said else f"train.{key}: {said}"
                raise UserError(f"{tree.place(('train', key, *keys))}: {said}") from None
        if not isinstance(values, list) or key in LISTS:
            continue
        found[key] = values
        if not values:
            raise UserError(f"{name} is an empty list; give at least one value")
        if key in NOT_SEARCHED:
            raise UserError(f"{name} is a list, but a grid search cannot vary it; give one value")
        for number, value in enumerate(values):
            if value in values[:number]:
                raise UserError(f"{name} contains {as_written(value)} twice; remove one of them")
    return found
