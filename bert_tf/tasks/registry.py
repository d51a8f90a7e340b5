"""All task families: those of bert_tf, and those of other packages.

A package makes its family known by an entry point, which is read when families are first looked up:

    [project.entry-points."bert_tf.families"]
    acrostics = "acrostics:FAMILY"

If the package is not installed, `bert_tf.register(FAMILY)` does the same.
"""

import functools
import importlib
import importlib.metadata
from collections.abc import Mapping
from typing import Any

from bert_tf.checkpoints.heads import Head
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.tasks.family import TaskFamily

ENTRY_POINTS = "bert_tf.families"
# The families of bert_tf, each a package with a FAMILY, in the order of lists for users.
_OWN = (
    "classification",
    "multi_label_classification",
    "regression",
    "multi_target_regression",
    "question_answering",
    "token_classification",
    "multiple_choice",
    "reranking",
    "zero_shot",
    "masked_lm",
    "next_sentence",
    "embedding",
)
_TAKEN = ("pretraining",)  # tasks that are not families, whose names are taken

_registered: dict[str, TaskFamily] = {}


def register(family: TaskFamily) -> None:
    """Makes a task family known: to YAML, `bert_tf.load`, and every command.

    Args:
        family: the record of its parts.

    Raises:
        UserError: it is not a `TaskFamily`, or its name or its model's class name is taken.
    """
    if not isinstance(family, TaskFamily):
        raise UserError(f"{family!r} cannot be registered; give a bert_tf.TaskFamily")
    others = (*own_families(), *_registered.values())
    if family.name in (*_TAKEN, *(each.name for each in others)):
        raise UserError(f"the task {family.name!r} is registered already; choose another name")
    if family.class_name in (each.class_name for each in others):
        raise UserError(
            f"the model of the task {family.name!r} is called {family.class_name}, like that of "
            "another task; choose another name"
        )
    _registered[family.name] = family


def families() -> tuple[TaskFamily, ...]:
    """All families; those of bert_tf come first."""
    _read_entry_points()
    return (*own_families(), *_registered.values())


@functools.cache
def own_families() -> tuple[TaskFamily, ...]:
    """The families of bert_tf."""
    return tuple(importlib.import_module(f"bert_tf.tasks.{name}").FAMILY for name in _OWN)


def family(name: str) -> TaskFamily:
    """The family of a task by its name, which must be known."""
    return next(each for each in families() if each.name == name)


def family_of(class_name: str) -> TaskFamily | None:
    """The family whose model class has this name; None if there is none."""
    return next((each for each in families() if each.class_name == class_name), None)


def heads_of_models() -> dict[str, Head]:
    """The heads of all families by the names of their models' classes."""
    return {each.class_name: each.head for each in families()}


def family_of_class(cls: type[Any]) -> TaskFamily | None:
    """The family of a class of models, or of the class that it extends; None if there is none."""
    found = (family_of(each.__name__) for each in cls.__mro__)
    return next((family for family in found if family is not None), None)


def lists_of(cls: type[Any]) -> tuple[tuple[str, ...], ...]:
    """The `lists` of the family of a class of models; () if it has none."""
    family = family_of_class(cls)
    return family.lists if family else ()


def class_for(cls: type[Any], arguments: Mapping[str, Any]) -> type[Any]:
    """The class of a model with such arguments: `cls`, or that of one of its family's variants."""
    own = family_of(cls.__name__)
    if own is None:
        return cls
    chosen = [name for argument, name in own.variants.items() if arguments.get(argument)]
    if not chosen or own.model_class() is not cls:
        return cls
    found = [each for each in families() if each.name == chosen[0]]
    if not found:
        raise UserError(f"{chosen[0]!r}, a variant of {own.name!r}, is not registered; register it")
    return found[0].model_class()


@functools.cache
def _read_entry_points() -> None:
    """Registers the families of installed packages. A warning names those that cannot be used."""
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        package = entry.dist.name if entry.dist else entry.value
        try:
            family = entry.load()
            if not any(each is family for each in _registered.values()):
                register(family)
        # The code of another package may raise any error.
        except Exception as error:
            logger.warning(f"the task {entry.name} of the package {package} is skipped: {error}")
