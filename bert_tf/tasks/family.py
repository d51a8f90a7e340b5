"""The record of a kind of task, through which everything else in bert_tf finds the task's parts."""

import dataclasses
import pkgutil
import re
import typing
from collections.abc import Mapping
from typing import Any

from bert_tf.checkpoints.heads import Head
from bert_tf.config.run import FinetuningRun
from bert_tf.errors import UserError

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PLACE = re.compile(r"[\w.]+:\w+")
# The base class of each part, as "module:Name", since importing these modules needs TensorFlow.
_BASES = {
    "model": "bert_tf.tasks.task_model:TaskModel",
    "task": "bert_tf.tasks.task:Task",
    "pictures": "bert_tf.interpret.pictures:Pictures",
}
# The parts that runs require: a family has all of them, or none.
_OF_RUNS = ("config", "task", "metrics")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskFamily:
    """A kind of task, with everything that belongs to it.

    A class may be given as "module:Name". It is then imported when it is first used, so that a
    command that does not compute starts without TensorFlow.

    >>> family = TaskFamily(
    ...     name="acrostics",
    ...     title="Acrostics",
    ...     model="acrostics.model:AcrosticReader",
    ...     pictures="acrostics.pictures:AcrosticPictures",
    ...     outputs=("word",),
    ... )
    >>> family.class_name
    'AcrosticReader'

    `bert_tf.register(family)` makes it known. A family whose models can be fine-tuned from YAML
    has `config`, `task` and `metrics` too.

    Attributes:
        name: the value of the key `task` in configurations.
        title: the name that users read.
        model: a `TaskModel`, the class that users create, train, ask and export.
        pictures: the `Pictures` of the page that `bert-tf inspect` writes.
        config: the configuration of its runs, a class that extends `FinetuningRun`, with
            `task: Literal[name]`. If the family cannot be fine-tuned from YAML, this and the next
            two are None.
        task: a `Task`, which reads the files of a run and writes its predictions.
        metrics: the metrics of its runs in reports; the first one decides.
        in_percent: whether these are in percent already.
        head: the model's head in other programs' formats. By default they have no such head: then
            only bert_tf reads its weights from their checkpoints.
        outputs: the outputs of `serving_default` of an export, by which bert_tf recognizes an
            export of the family.
        ids_outputs: the outputs of an export that takes ids, if they have other names.
        lists: the outputs that are lists, of a different length in each row; those in a tuple have
            the same length.
        variants: arguments of the model's constructor, such as `multi_label`, that make a model of
            another family, whose class extends this one: argument -> name of that family.

    Raises:
        UserError: a part is missing, or has a wrong type.
    """

    name: str
    title: str = ""
    model: type[Any] | str = ""
    pictures: type[Any] | str = ""
    config: type[FinetuningRun] | None = None
    task: type[Any] | str = ""
    metrics: tuple[str, ...] = ()
    in_percent: bool = False
    head: Head = dataclasses.field(default_factory=Head)
    outputs: tuple[str, ...] = ()
    ids_outputs: tuple[str, ...] = ()
    lists: tuple[tuple[str, ...], ...] = ()
    variants: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise UserError(
                f"the name of a task family is {self.name!r}; use only lowercase letters, digits "
                "and underscores"
            )
        needed = ("title", "model", "pictures", "outputs")
        missing = [part for part in needed if not getattr(self, part)]
        if any(getattr(self, part) for part in _OF_RUNS):
            missing += [part for part in _OF_RUNS if not getattr(self, part)]
        if missing:
            raise UserError(f"the task family {self.name!r} has no {missing[0]}; give it one")
        if not isinstance(self.head, Head):
            raise UserError(f"the head {self._which} is {self.head!r}; give a Head")
        if not isinstance(self.outputs, tuple):
            raise UserError(
                f"the outputs {self._which} are {self.outputs!r}; give a tuple of names"
            )
        self._check_config()
        for part in ("model", "pictures", "task"):
            value = getattr(self, part)
            if isinstance(value, type):
                self._check_class(part, value)
            elif value and not (isinstance(value, str) and _PLACE.fullmatch(value)):
                raise UserError(
                    f'the {part} {self._which} is {value!r}; it must be a class, or "module:Name"'
                )

    @property
    def _which(self) -> str:
        return f"of the task family {self.name!r}"

    @property
    def class_name(self) -> str:
        """The name of the model's class, which checkpoints hold."""
        return self.model.__name__ if isinstance(self.model, type) else self.model.split(":")[1]

    def model_class(self) -> type[Any]:
        """The class of the model."""
        return self._class("model")

    def pictures_class(self) -> type[Any]:
        """The class of the pictures."""
        return self._class("pictures")

    def task_class(self) -> type[Any]:
        """The class that reads the files of a run; only of a family that has runs."""
        return self._class("task")

    def _class(self, part: str) -> Any:
        value = getattr(self, part)
        if isinstance(value, type):
            return value
        try:
            found = pkgutil.resolve_name(value)
        except (ImportError, AttributeError) as error:
            raise UserError(
                f"the {part} {self._which}, {value}, cannot be imported: {error}"
            ) from error
        self._check_class(part, found)
        return found

    def _check_config(self) -> None:
        if self.config is None:
            return
        if not (isinstance(self.config, type) and issubclass(self.config, FinetuningRun)):
            raise UserError(f"the config {self._which} does not extend FinetuningRun")
        if typing.get_args(typing.get_type_hints(self.config)["task"]) != (self.name,):
            raise UserError(
                f"the config {self._which} must have the field task: Literal[{self.name!r}]"
            )

    def _check_class(self, part: str, found: Any) -> None:
        base = pkgutil.resolve_name(_BASES[part])
        if not (isinstance(found, type) and issubclass(found, base)):
            raise UserError(f"the {part} {self._which} does not extend {base.__name__}")
        abstract = [
            name
            for name in dir(base)
            if getattr(getattr(found, name, None), "__isabstractmethod__", False)
        ]
        if abstract:
            raise UserError(
                f"the {part} {self._which}, {found.__name__}, lacks {', '.join(abstract)}"
            )
