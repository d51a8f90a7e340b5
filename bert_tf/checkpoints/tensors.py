"""Named tensors in memory, in safetensors files and in HDF5 files of unknown origin.

A safetensors file is a length, a JSON header and raw numbers; the library checks that all numbers
are in the file. An HDF5 file may name other files, nest groups without end, and contain arrays that
unpack to far more than its size. So everything in it is checked before an array is read.
"""

import dataclasses
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import h5py
import numpy as np

from bert_tf.errors import UserError
from bert_tf.io.files import check_there

if TYPE_CHECKING:
    from safetensors import safe_open

Taken = TypeVar("Taken")
_MOST_DEPTH = 100


@dataclasses.dataclass(frozen=True)
class Tensors:
    """Tensors that are read one by one, when they are needed; `shapes` has their names."""

    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]

    def renamed(self, names: Mapping[str, str]) -> "Tensors":
        """Some of the tensors with other names; `names` maps each new name to the old one."""
        shapes = {new: self.shapes[old] for new, old in names.items()}
        return Tensors(shapes, lambda name: self.read(names[name]))


def of_arrays(arrays: Mapping[str, np.ndarray]) -> Tensors:
    """Arrays as `Tensors`."""
    shapes = {name: tuple(array.shape) for name, array in arrays.items()}
    return Tensors(shapes, lambda name: arrays[name])


def joined(*parts: Tensors) -> Tensors:
    """The tensors of several files. If two have the same name, the later one counts."""
    owner = {name: part for part in parts for name in part.shapes}
    shapes = {name: part.shapes[name] for name, part in owner.items()}
    return Tensors(shapes, lambda name: owner[name].read(name))


def save(
    path: Path, arrays: Mapping[str, np.ndarray], metadata: dict[str, str] | None = None
) -> None:
    """Writes named arrays to `path`. A full disk is an OSError, as for other files."""
    import safetensors
    import safetensors.numpy

    # The library writes the buffer behind an array, and ignores its strides.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    try:
        safetensors.numpy.save_file(contiguous, path, metadata)
    except safetensors.SafetensorError as error:
        if "No space left" in str(error):
            raise OSError(errno.ENOSPC, "No space left on device", str(path)) from error
        raise


def open_file(path: Path) -> Tensors:
    """The tensors of a safetensors file."""
    shapes = _from_file(path, _shapes)
    return Tensors(shapes, lambda name: _from_file(path, lambda file: file.get_tensor(name)))


def load(path: Path) -> dict[str, np.ndarray]:
    """Reads all arrays of a safetensors file."""
    return _from_file(path, lambda file: file.get_tensors())


def metadata(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file."""
    return _from_file(path, lambda file: file.metadata() or {})


def _shapes(file: "safe_open") -> dict[str, tuple[int, ...]]:
    names = file.keys()
    return {name: tuple(file.get_slice(name).get_shape()) for name in names}


def open_hdf5(path: Path) -> Tensors:
    """The arrays of an HDF5 file by their paths in it, for example "bert/pooler/kernel:0"."""
    size = os.path.getsize(path) if path.is_file() else 0
    shapes = _from_hdf5(
        path, lambda file: {each.name[1:]: each.shape for each in datasets(file, size)}
    )
    return Tensors(shapes, lambda name: _from_hdf5(path, lambda file: np.asarray(file[name][()])))


def save_hdf5(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays to an HDF5 file; a "/" in a name is a group."""
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


def datasets(file: h5py.File, size: int) -> list[h5py.Dataset]:
    """All arrays in a file of `size` bytes; ValueError if it holds anything else."""
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


def _from_file(path: Path, get: Callable[["safe_open"], Taken]) -> Taken:
    """The result of `get` for the opened safetensors file."""
    import safetensors

    check_there(path, "checkpoint")
    try:
        with safetensors.safe_open(path, framework="np") as file:
            return get(file)
    except (safetensors.SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(path, error) from None


def _from_hdf5(path: Path, get: Callable[[h5py.File], Taken]) -> Taken:
    """The result of `get` for the opened HDF5 file."""
    check_there(path, "checkpoint")
    try:
        # Without a lock, files on read-only disks can be read.
        with h5py.File(path, "r", locking=False) as file:
            return get(file)
    # The errors of HDF5, h5py and NumPy in a damaged file have no common class.
    except Exception as error:
        raise damaged(path, " ".join(str(error).split())[:200]) from None


def damaged(path: Path, why: object) -> UserError:
    """The error for a damaged checkpoint."""
    return UserError(f"checkpoint is damaged: {path} ({why}); copy it again")
