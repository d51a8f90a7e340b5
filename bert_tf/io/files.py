"""Reading what users give."""

import contextlib
import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from bert_tf.errors import UserError

_GZIP_MAGIC = b"\x1f\x8b"


def read_bytes(path: str | os.PathLike, what: str = "file") -> bytes:
    """The whole content of `path`; `what` names the file's role in error messages.

    Raises:
        UserError: the file is missing, unreadable, or empty.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{what} not found: {path}") from None
    except OSError as error:
        raise UserError(f"{what} cannot be read: {path} ({error.strerror})") from None
    if not data:
        raise UserError(f"{what} is empty: {path}")
    return data


def read_text(path: str | os.PathLike, what: str = "file") -> str:
    """The whole text of `path`; `what` names the file's role in error messages.

    Raises:
        UserError: the file is missing, unreadable, empty, or not UTF-8.
    """
    data = read_bytes(path, what)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{what} is not UTF-8: {path}, line {line}, byte {error.start} "
            f"(0x{data[error.start]:02x}); convert it to UTF-8"
        ) from None


def first_of(files: Sequence[str | os.PathLike]) -> str:
    """The name of some files in messages.

    >>> first_of(["a.txt", "b.txt", "c.txt"])
    'a.txt and 2 more'
    """
    return f"{files[0]}" + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def checksum(path: str | os.PathLike) -> str:
    """The SHA-256 of a file, in hexadecimal. Raises OSError where it cannot be read."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@contextlib.contextmanager
def open_maybe_gzipped(
    path: str | os.PathLike, what: str = "file"
) -> Iterator[tuple[io.BufferedIOBase, BinaryIO]]:
    """Opens a file, plain or gzipped whatever its name; `what` names its role in error messages.

    Yields:
        The unpacked content, and the file itself, whose position shows how much has been read.

    Raises:
        UserError: the file is missing, unreadable or broken gzip, even if only reading shows it.
    """
    try:
        with open(path, "rb") as file:
            is_gzipped = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            with gzip.GzipFile(fileobj=file) if is_gzipped else file as content:
                yield content, file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(
            f"{what} is damaged gzip data: {path} ({error}); copy or download it again"
        ) from None
    except OSError as error:
        raise UserError(f"{what} cannot be read: {path} ({error.strerror})") from None
