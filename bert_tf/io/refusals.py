"""Error messages for what the system refuses: a place to write, space on the disk, memory."""

import contextlib
import errno
import os
import re
import shutil
import tempfile
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


# A disk with fewer free bytes counts as full if TensorFlow fails: some of its writers do not report
# that a file was cut, so that only its readers fail.
_LEAST_FREE = 2**20


@contextlib.contextmanager
def explained(path: str | os.PathLike | None = None) -> Iterator[None]:
    """Turns an error that forbids writing at `path`, or temporary files, into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if (told := refusal(error, path)) is None:
            raise
        raise told from error


def refusal(error: Exception, path: str | os.PathLike | None = None) -> UserError | None:
    """The error to report if writing `path`, or temporary files, failed; None for other errors."""
    if isinstance(error, FileNotFoundError) and "usable temporary directory" in str(error):
        return UserError(f"{error.strerror}; set TMPDIR to a folder that can be written")
    temporary = Path(tempfile.tempdir or os.environ.get("TMPDIR") or "/tmp").absolute()
    is_cut = "OpError" in [each.__name__ for each in type(error).__mro__]
    is_full = is_disk_full(error) or is_cut and _free(path or temporary) < _LEAST_FREE
    refused = error if isinstance(error, OSError) and is_refused(error) else None
    if path is not None:
        # A full folder of temporary files may be on another disk.
        if is_full and not _free(temporary) < _LEAST_FREE <= _free(path):
            return UserError(
                f"the disk is full while writing {path}; free some space and start again"
            )
        if refused and _is_about(refused, Path(path)):
            return cannot_write(path, refused)
    if is_full:
        return UserError(
            f"the folder of temporary files is full: {temporary}; free some space there, or set "
            "TMPDIR to another folder"
        )
    if refused and Path(str(refused.filename)).absolute().parent == temporary:
        return UserError(
            f"temporary files cannot be written to {temporary} ({refused.strerror}); set TMPDIR to "
            "another folder"
        )
    return None


def _free(path: str | os.PathLike) -> int:
    """The free bytes of the disk that `path` is on, or will be on."""
    path = Path(path).absolute()
    return shutil.disk_usage(next(p for p in (path, *path.parents) if os.path.exists(p))).free


def _is_about(error: OSError, path: Path) -> bool:
    """Whether the error is about `path`, what is inside or above it, or its temporary form."""
    if error.filename is None:
        return True
    refused, path = Path(str(error.filename)).absolute(), path.absolute()
    inside = (refused, *refused.parents)
    return (
        path in inside
        or refused in path.parents
        or any(
            each.parent == path.parent and each.name.lstrip(".").startswith(f"{path.name}.")
            for each in inside
        )
    )


def cannot_write(path: str | os.PathLike, error: OSError) -> UserError:
    """The error to report if the system does not allow writing at `path`."""
    return UserError(f"cannot write {path} ({error.strerror}); choose another place for the output")


def is_refused(error: Exception) -> bool:
    """Whether an error of Python or TensorFlow means that the system refuses to open a file."""
    names = ("PermissionDeniedError", "FailedPreconditionError")
    if isinstance(error, OSError):
        return error.errno in _REFUSED
    words = str(error).lower()
    return type(error).__name__ in names and any(os.strerror(n).lower() in words for n in _REFUSED)


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
