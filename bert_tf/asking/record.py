"""The record of an export: the class of its model, with its settings, as JSON.

A SavedModel has it in `assets/task.json`, a LiteRT file in its metadata. It is untrusted, so all of
it is checked. The functions at the end are for SavedModels, opened by Python or by the C library.
"""

import dataclasses
import importlib.util
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from bert_tf.asking import encoded, texts_in
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.files import is_there
from bert_tf.io.remote import fetched, local_path, names_in

# The file that makes a folder a SavedModel.
FILE = "saved_model.pb"

# The version of the record's format. A reader refuses a later version.
FORMAT = 1
# The name of the record among the assets of a SavedModel.
RECORD_FILE = "task.json"

_LONGEST = 2**24


@dataclasses.dataclass(frozen=True)
class Record:
    """What an export says about its model.

    `lengths` are numbers of tokens in a row: one for each signature of a LiteRT file, and the most
    for a SavedModel. `precision` is that of the products, or of the weights of a LiteRT file.
    `lists` are the outputs that are lists whose length differs between rows; those in a tuple end
    at the same place. `cuts` says whether the model leaves out a part of a long text.
    """

    model: Mapping[str, Any]
    lengths: tuple[int, ...]
    inputs: str
    precision: str
    lists: tuple[tuple[str, ...], ...] = ()
    cuts: bool = False

    @property
    def class_name(self) -> str:
        return self.model["model"]

    def may_cut(self, columns: Sequence[Sequence[Any]]) -> bool:
        """Whether a row has enough bytes that its texts may be longer than the model reads."""
        settings = self.model.get("settings", {})
        added = json.dumps([settings.get("prompts", ""), settings.get("hypothesis_template", "")])
        # Three tokens are special, and a text has at most as many others as it has bytes.
        most = max(self.lengths) - 3 - len(added)
        return self.cuts and any(
            sum(len(encoded(text)) for value in row for text in texts_in(value)) > most
            for row in zip(*columns, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        lists = {"lengths": [*self.lengths], "lists": [[*each] for each in self.lists]}
        return dataclasses.asdict(self) | lists

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], path: str | os.PathLike) -> Self:
        """The record that `to_dict` made, checked; `path` names the export in messages."""
        kinds = {"model": dict, "lengths": list, "inputs": str, "precision": str}
        wrong = [name for name, kind in kinds.items() if not isinstance(fields.get(name), kind)]
        wrong += fields.keys() - {*kinds, "lists", "cuts"}
        lists = fields.get("lists", [])  # files of 0.2.0 have neither `lists` nor `cuts`
        if not isinstance(lists, list) or not all(map(_are_names, lists)):
            wrong.append("lists")
        if not isinstance(fields.get("cuts", False), bool):
            wrong.append("cuts")
        if not wrong:
            name, settings = fields["model"].get("model"), fields["model"].get("settings", {})
            if not isinstance(name, str) or not isinstance(settings, dict):
                wrong = ["model"]
        lengths = fields.get("lengths")
        if not wrong and not (lengths and all(type(each) is int and each > 0 for each in lengths)):
            wrong = ["lengths"]
        if wrong:
            raise UserError(f"{path} is damaged ({wrong[0]} is not as expected); export it again")
        own = {"lengths": tuple(fields["lengths"]), "lists": tuple(map(tuple, lists))}
        return cls(**{**fields, **own})

    @classmethod
    def of_saved_model(cls, folder: str | os.PathLike) -> Self | None:
        """The record of a SavedModel; None if it has none, like those of bert_tf 0.2.0."""
        path = Path(folder) / "assets" / RECORD_FILE
        if not is_there(path):
            return None
        try:
            with open(path, "rb") as file:
                fields = from_json(file.read(_LONGEST + 1), folder)
        except UserError:
            raise
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{path} is damaged ({error}); export it again") from None
        return cls.from_dict(fields, path)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def to_json(fields: Mapping[str, Any]) -> str:
    """The fields of a record with the version of their format."""
    return json.dumps({**fields, "format": FORMAT}, ensure_ascii=False, allow_nan=False)


def from_json(text: bytes, path: str | os.PathLike) -> dict[str, Any]:
    """The fields that `to_json` was given. Raises a ValueError if they are damaged."""
    if len(text) > _LONGEST:
        raise ValueError("its settings are too long")
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise ValueError("its settings are not a JSON object")
    written = fields.pop("format", None)
    if type(written) is not int:
        raise ValueError("it has no format version")
    if written > FORMAT:
        raise UserError(
            f"{path} was exported by a later bert_tf (format {written}); update bert_tf to load it"
        )
    return fields


def is_saved_model(path: str | os.PathLike) -> bool:
    """Whether there is a SavedModel at `path`, or versions of one in the layout of servers."""
    folder = local_path(path)
    try:
        return is_there(folder / FILE) or bool(versions(folder))
    except OSError:  # a name that is too long
        return False


def versions(folder: Path) -> list[Path]:
    """The versions of a SavedModel in a folder, as servers have them; their names are numbers."""
    found = (each.parent for each in names_in(folder, f"*/{FILE}"))
    return [each for each in found if each.name.isdecimal()]


def find_saved_model(path: str) -> str:
    """The folder of the SavedModel at `path`, or of its newest version, as TF Serving has them."""
    if (folder := _newest(path)) != local_path(path):
        logger.info(f"{path}: using version {folder.name}, the newest")
    for file in fetched(folder).rglob("*"):
        if not file.is_dir():
            is_there(file, "file of a SavedModel")
    return str(folder)


def _newest(path: str) -> Path:
    folder = local_path(path)
    if is_there(folder / FILE):
        return folder
    return max(versions(folder), key=lambda version: int(version.name))


def is_float32(path: str) -> bool:
    """Whether there is a SavedModel at `path` that computes in float32, as its record says."""
    record = Record.of_saved_model(_newest(path)) if is_saved_model(path) else None
    return record is not None and record.precision == "float32"


def no_signature(path: str, signature: str, known: Iterable[str]) -> UserError:
    """The error for a signature that a SavedModel does not have."""
    names = ", ".join(known)
    return UserError(f"{path} has no signature {signature!r}; the signatures are {names}")


def no_text(path: str, signature: str, name: str, dtype: str) -> UserError:
    """The error for an input that is neither a text nor a list of texts."""
    return UserError(
        f"{path}: signature {signature} takes {name} as {dtype}; predict requires a model that "
        "takes strings"
    )


def operation_libraries() -> list[Path]:
    """The libraries of TensorFlow Text (2.20 and 2.21), whose folder is not documented."""
    package = importlib.util.find_spec("tensorflow_text")
    if package is None or not package.submodule_search_locations:
        raise UserError("tensorflow-text is not installed; install it: pip install tensorflow-text")
    folder = Path(package.submodule_search_locations[0], "python", "ops")
    if libraries := sorted(folder.glob("*.so")):
        return libraries
    raise ImportError(
        f"{folder} contains no libraries of operations; install a version of tensorflow-text that "
        "bert_tf supports"
    )


def not_loaded(path: str, error: Exception) -> UserError:
    """The error for a SavedModel that TensorFlow cannot load.

    >>> print(not_loaded("films", ValueError("Op type not registered '_QuantizedMatMul' in x")))
    films has the operation _QuantizedMatMul, which this build of TensorFlow does not...
    """
    if unknown := re.search(r"Op type not registered '(\w+)'", str(error)):
        is_int8 = unknown[1] == "_QuantizedMatMul"
        remedy = "use an x86 processor, or another precision" if is_int8 else "load its library"
        return UserError(
            f"{path} has the operation {unknown[1]}, which this build of TensorFlow does not have; "
            f"{remedy}"
        )
    return UserError(f"SavedModel is damaged: {path} ({error}); export it again")
