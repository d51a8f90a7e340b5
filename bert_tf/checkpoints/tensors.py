"""Named tensors in files, and safetensors files in particular.

safetensors is a length, a JSON header and raw numbers; the library checks that the header's places
lie within the file. What it and the operating system complain of is made readable here.
"""

import dataclasses
import errno
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from bert_tf.errors import UserError

if TYPE_CHECKING:
    from safetensors import safe_open

Taken = TypeVar("Taken")


@dataclasses.dataclass(frozen=True)
class Tensors:
    """Tensors that are read when they are asked for.

    Attributes:
        shapes: their names and shapes.
        read: the array of one name. Raises UserError where the file is damaged.
    """

    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]

    def renamed(self, names: Mapping[str, str]) -> "Tensors":
        """Those tensors whose old names are the values of `names`, under its keys."""
        shapes = {new: self.shapes[old] for new, old in names.items()}
        return Tensors(shapes, lambda name: self.read(names[name]))


def of_arrays(arrays: Mapping[str, np.ndarray]) -> Tensors:
    """Tensors that are in memory already."""
    shapes = {name: tuple(array.shape) for name, array in arrays.items()}
    return Tensors(shapes, lambda name: arrays[name])


def joined(*parts: Tensors) -> Tensors:
    """The tensors of several files; where a name is in two, the later one counts."""
    owner = {name: part for part in parts for name in part.shapes}
    shapes = {name: part.shapes[name] for name, part in owner.items()}
    return Tensors(shapes, lambda name: owner[name].read(name))


def save(
    path: Path, arrays: Mapping[str, np.ndarray], metadata: dict[str, str] | None = None
) -> None:
    """Writes named arrays to `path`.

    Raises:
        OSError: as usual for files; safetensors' own report of a full disk is turned into it.
    """
    import safetensors
    import safetensors.numpy

    # The library writes the buffer behind an array, whatever its strides.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    try:
        safetensors.numpy.save_file(contiguous, path, metadata)
    except safetensors.SafetensorError as error:
        if "No space left" in str(error):
            raise OSError(errno.ENOSPC, "No space left on device", str(path)) from error
        raise


def open_file(path: Path) -> Tensors:
    """The tensors of a safetensors file.

    Raises:
        UserError: the file is missing or is not a whole safetensors file.
    """
    shapes = _from_file(path, _shapes)
    return Tensors(shapes, lambda name: _from_file(path, lambda file: file.get_tensor(name)))


def load(path: Path) -> dict[str, np.ndarray]:
    """Reads all arrays of `path`.

    Raises:
        UserError: the file is missing or is not a whole safetensors file.
    """
    return _from_file(path, lambda file: file.get_tensors())


def _shapes(file: "safe_open") -> dict[str, tuple[int, ...]]:
    names = file.keys()
    return {name: tuple(file.get_slice(name).get_shape()) for name in names}


def _from_file(path: Path, get: Callable[["safe_open"], Taken]) -> Taken:
    """What `get` takes from the opened file."""
    import safetensors

    if not path.is_file():
        raise UserError(f"checkpoint not found: {path}")
    try:
        with safetensors.safe_open(path, framework="np") as file:
            return get(file)
    except (safetensors.SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"checkpoint is damaged: {path} ({error}); copy it again") from None
