"""HDF5 files as data of unknown origin: the arrays in the file itself, and nothing they point to.

An HDF5 file may name other files, nest groups without end, and hold arrays that unpack to far more
than its size. Everything in a file is looked at before an array is read.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import h5py
import numpy as np

from bert_tf.checkpoints.tensors import Tensors
from bert_tf.errors import UserError

Taken = TypeVar("Taken")
_MOST_DEPTH = 100


def open_file(path: Path) -> Tensors:
    """The arrays of an HDF5 file by their paths in it, for example "bert/pooler/kernel:0".

    Raises:
        UserError: the file is missing or damaged, or holds anything but arrays of numbers.
    """
    size = os.path.getsize(path) if path.is_file() else 0
    shapes = _from_file(
        path, lambda file: {each.name[1:]: each.shape for each in datasets(file, size)}
    )
    return Tensors(shapes, lambda name: _from_file(path, lambda file: np.asarray(file[name][()])))


def datasets(file: h5py.File, size: int) -> list[h5py.Dataset]:
    """All arrays in a file of `size` bytes.

    Raises:
        ValueError: an array is in another file, does not hold numbers, or is in two places; or
            the arrays are larger than the file.
    """
    found = list(_datasets(file, set(), 0))
    if sum(each.nbytes for each in found) > size:
        raise ValueError("its weights are larger than the file")
    return found


def _datasets(group: h5py.Group, seen: set[int], depth: int) -> Iterator[h5py.Dataset]:
    seen.add(h5py.h5o.get_info(group.id).addr)
    if depth > _MOST_DEPTH:
        raise ValueError("its weights are nested too deeply")
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError("a weight is in the wrong place")
        item = group[name]
        if h5py.h5o.get_info(item.id).addr in seen:
            raise ValueError("a weight is in two places")
        if isinstance(item, h5py.Group):
            yield from _datasets(item, seen, depth + 1)
        elif not isinstance(item, h5py.Dataset) or item.external or item.is_virtual:
            raise ValueError("a weight is in the wrong place")
        elif item.shape is None or item.dtype.hasobject or item.dtype.kind not in "fiubV":
            raise ValueError("a weight is not a number")
        elif any(item.attrs.get_id(each).shape for each in item.attrs):
            raise ValueError("a weight has attributes")
        else:
            seen.add(h5py.h5o.get_info(item.id).addr)
            yield item


def _from_file(path: Path, get: Callable[[h5py.File], Taken]) -> Taken:
    """What `get` takes from the opened file."""
    if not path.is_file():
        raise UserError(f"checkpoint not found: {path}")
    try:
        # Without a lock, a file on a disk that cannot be written to is read as well.
        with h5py.File(path, "r", locking=False) as file:
            return get(file)
    # What HDF5, h5py and NumPy meet in a damaged file has no common class of errors.
    except Exception as error:
        first = " ".join(str(error).split())[:200]
        raise UserError(f"checkpoint is damaged: {path} ({first}); copy it again") from None
