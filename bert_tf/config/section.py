"""What all sections of a configuration have in common, and the kinds of values of their keys."""

import glob
import os
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import BeforeValidator, Field, WrapValidator

from bert_tf.config.yaml_files import Text
from bert_tf.errors import named
from bert_tf.io.remote import exists, is_remote


def _found(path: object) -> object:
    """A path in a file, made absolute if it exists in the file's folder or in the current one."""
    if not (isinstance(path, Text) and path):
        return path
    expanded = os.path.expanduser(path)
    if is_remote(expanded):
        return expanded
    for start in (path.folder, Path.cwd()):
        place = os.path.abspath(start / expanded)
        # A TensorFlow checkpoint is named by the prefix of its files.
        found = exists(place) or exists(f"{place}.index")
        if found or glob.has_magic(expanded) and glob.glob(place, recursive=True):
            return named(place)
    return expanded


FilePath = Annotated[str, Field(min_length=1), BeforeValidator(_found)]
"""A path, a glob or a name."""
FilePaths = Annotated[tuple[FilePath, ...], Field(min_length=1)]
PLACED = WrapValidator(lambda text, check: check(text) and text)
"""For a text that keeps its place in the file, `Text.place`."""
Names = Annotated[tuple[str, ...], Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Length = Annotated[int, Field(ge=3)]
"""Tokens of a row. The shortest row is [CLS], one token and [SEP]."""
Natural = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, lt=1)]
"""The rate of a dropout."""
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]


class Section(pydantic.BaseModel):
    """A section of a file. Its fields are the keys; the text below a field describes it."""

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    def is_default(self, key: str) -> bool:
        return getattr(self, key) == type(self).model_fields[key].default

    @pydantic.model_validator(mode="before")
    @classmethod
    def _of_yaml(cls, values: Any) -> Any:
        if values is None:  # `train:` with nothing below it
            return {}
        if not isinstance(values, dict):
            return values
        return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}

    @pydantic.model_serializer(mode="wrap")
    def _without_nulls(self, handler: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out keys that are null and are so by default, and sections without other keys."""
        fields = type(self).model_fields
        return {
            key: value
            for key, value in handler(self).items()
            if value != {} and not (value is None and fields[key].default is None)
        }
