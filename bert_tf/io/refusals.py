"""Error messages for what the system refuses: a place to write, space on the disk, memory."""

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from bert_tf.errors import UserError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (
    errno.EACCES,
    errno.EEXIST,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
)


@contextlib.contextmanager
def explained(path: str | os.PathLike) -> Iterator[None]:
    """Turns an error of the system that forbids writing at `path` into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if is_disk_full(error):
            raise UserError(
                f"the disk is full while writing {path}; free some space and start again"
            ) from error
        if isinstance(error, OSError) and error.errno in _REFUSED and _is_about(error, Path(path)):
            raise cannot_write(path, error) from error
        raise


def _is_about(error: OSError, path: Path) -> bool:
    """Whether the error is about `path`, a file inside or above it, or its temporary form.

    It may also be about a file that the content is read from.
    """
    if error.filename is None:
        return True
    refused, path = Path(error.filename).absolute(), path.absolute()
    inside = (refused, *refused.parents)
    return (
        path in inside
        or refused in path.parents
        or any(
            each.parent == path.parent and each.name.startswith(f".{path.name}.") for each in inside
        )
    )


def cannot_write(path: str | os.PathLike, error: OSError) -> UserError:
    """The error to report if the system does not allow writing at `path`."""
    return UserError(f"cannot write {path} ({error.strerror}); choose another place for the output")


def is_out_of_memory(error: Exception) -> bool:
    """Whether the error means that the machine or a GPU has too little memory."""
    # TensorFlow's error is recognized by its name, so that callers need not import TensorFlow.
    return isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError"


def is_disk_full(error: Exception) -> bool:
    """Whether the disk is full. TensorFlow and safetensors say so in words, NumPy by two sizes."""
    if isinstance(error, OSError) and error.errno:
        return error.errno in _FULL
    words = str(error)
    if re.fullmatch(r"\d+ requested and \d+ written", words):
        return True
    return any(os.strerror(number) in words for number in _FULL)
