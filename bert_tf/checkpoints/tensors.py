"""safetensors files, with the operating system's and the library's complaints made readable."""

import errno
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bert_tf.errors import UserError


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes named arrays to `path`.

    Raises:
        OSError: as usual for files; safetensors' own report of a full disk is turned into it.
    """
    import safetensors
    import safetensors.numpy

    # The library writes the buffer behind an array, whatever its strides.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    try:
        safetensors.numpy.save_file(contiguous, path)
    except safetensors.SafetensorError as error:
        if "No space left" in str(error):
            raise OSError(errno.ENOSPC, "No space left on device", str(path)) from error
        raise


def load(path: Path) -> dict[str, np.ndarray]:
    """Reads all arrays of `path`.

    Raises:
        UserError: the file is missing or is not a whole safetensors file.
    """
    import safetensors
    import safetensors.numpy

    if not path.is_file():
        raise UserError(f"checkpoint not found: {path}")
    try:
        return safetensors.numpy.load_file(path)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise UserError(f"checkpoint is damaged: {path} ({error}); copy it again") from None
