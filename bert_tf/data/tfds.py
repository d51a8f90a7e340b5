"""Data sets of TensorFlow Datasets (TFDS) on this machine, by name."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bert_tf.dependencies import optional
from bert_tf.errors import UserError

# Our names of splits -> their names in most data sets.
SPLITS = {"train": "train", "dev": "validation", "test": "test"}


def tfds() -> Any:
    """The module `tensorflow_datasets`."""
    return optional("tensorflow_datasets", "tfds", "data.format tfds")


def tfds_builder(name: str) -> Any:
    """A data set, downloaded and prepared if need be, by TFDS's name or its prepared folder."""
    datasets = tfds()
    try:
        if Path(name).is_dir():
            return datasets.builder_from_directory(name)
        builder = datasets.builder(name)
        builder.download_and_prepare()
    except datasets.core.DatasetNotFoundError:
        raise UserError(f"TFDS has no data set {name}; check data.path") from None
    # The data sets are other people's programs, and fail in their own ways.
    except Exception as error:
        raise UserError(f"TFDS cannot prepare {name}: {one_line(error)}") from error
    return builder


def load_split(name: str, split: str) -> tuple[Iterable[Mapping[str, Any]], Mapping[str, Any]]:
    """The rows of a split, such as train[:10%], as NumPy values, and the features they have."""
    builder = tfds_builder(name)
    try:
        rows = tfds().as_numpy(builder.as_dataset(split=split, shuffle_files=False))
    # TFDS has many kinds of errors for a split that is not there.
    except Exception as error:
        raise UserError(f"TFDS cannot give {name}, split {split}: {one_line(error)}") from error
    return read_rows(rows, f"TFDS {name}, split {split}"), builder.info.features


def read_rows(rows: Iterable[Mapping[str, Any]], source: str) -> Iterator[Mapping[str, Any]]:
    """The rows of a split, read from its files as needed; `source` names it in messages."""
    import tensorflow as tf

    try:
        yield from rows
    except tf.errors.OpError as error:
        raise UserError(
            f"{source} cannot be read ({one_line(error)}); delete the files that TFDS prepared "
            "for it and run the command again"
        ) from error


def one_line(error: Exception) -> str:
    """The kind of an error and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
