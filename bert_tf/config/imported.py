"""Classes and functions of other packages, which only `finetune` and `pretrain` import."""

import pkgutil
import string
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from bert_tf.config.section import PLACED, Section
from bert_tf.console import logger
from bert_tf.errors import UserError

ImportedName = Annotated[
    str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*[:.][A-Za-z_]\w*$"), PLACED
]


class Imported(Section):
    """A class, or a function that makes an object, and its arguments."""

    name: ImportedName
    """`module:Name` or `module.Name`, of a module that Python finds."""
    arguments: dict[str, Any] = {}
    """Arguments by name. `$learning_rate`, `$total_steps` and `$warmup_steps` in them are values of
    the run, and for callbacks `$run` is its folder. `$$` is a dollar sign."""

    def __str__(self) -> str:
        """A part of a trial's name, which is also the name of its folder."""
        return f"{self.name}{self.arguments or ''}".replace("/", "_")

    @property
    def place(self) -> str:
        """Where the name is written, as file:line."""
        return getattr(self.name, "place", "train")

    def find(self) -> Callable[..., Any]:
        try:
            return pkgutil.resolve_name(self.name)
        except Exception as error:
            raise UserError(
                f"{self.place}: {self.name} cannot be imported ({type(error).__name__}: {error}); "
                "correct the name, or install its package"
            ) from error

    def make(self, kind: type, values: Mapping[str, Any], **given: Any) -> Any:
        """The object, of the class `kind`, from the arguments of the file and those `given`."""
        try:
            made = self.find()(**_filled(self.arguments, values), **given)
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"{self.place}: {self.name} cannot be made ({type(error).__name__}: {error}); "
                "correct its arguments"
            ) from error
        if not isinstance(made, kind):
            raise UserError(
                f"{self.place}: {self.name} returns {type(made).__name__}, but a Keras "
                f"{kind.__name__} is required; name another"
            )
        return made


def import_all(named: Iterable[Imported]) -> None:
    """Prints the names and their places, and then imports them. Errors are those of `find`."""
    found = {each.name: each for each in named}
    for each in found.values():
        logger.info(f"imports {each.name}, named in {each.place}")
    for each in found.values():
        each.find()


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Arguments, with the values of the run inserted into their texts."""
    if isinstance(value, Mapping):
        return {key: _filled(each, values) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(each, values) for each in value]
    if not isinstance(value, str) or value[:1] == "$" and value[1:] in values:
        return values[value[1:]] if isinstance(value, str) else value
    try:
        return string.Template(value).substitute(values)
    except (KeyError, ValueError):
        known = ", ".join(f"${name}" for name in values)
        raise ValueError(f"{value!r} has a $ that is not one of {known}, or $$") from None
