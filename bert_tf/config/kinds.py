"""The kinds of values that keys have."""

import glob
import os
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from bert_tf.config.yaml_files import Text


def _found(path: object) -> object:
    """A path of a file, made absolute if it exists in the file's folder or in the current one."""
    if not (isinstance(path, Text) and path):
        return path
    expanded = os.path.expanduser(path)
    for start in (path.folder, Path.cwd()):
        place = os.path.abspath(start / expanded)
        # A TensorFlow checkpoint is named by what its files begin with.
        named = os.path.exists(place) or os.path.exists(f"{place}.index")
        if named or glob.has_magic(expanded) and glob.glob(place, recursive=True):
            return place
    return expanded


FilePath = Annotated[str, Field(min_length=1), BeforeValidator(_found)]
"""A path, a glob or a name."""
FilePaths = Annotated[tuple[FilePath, ...], Field(min_length=1)]
Names = Annotated[tuple[str, ...], Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Length = Annotated[int, Field(ge=3)]
"""Tokens of a row; [CLS], one token and [SEP] are the fewest."""
Natural = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, lt=1)]
"""Of dropout."""
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]
