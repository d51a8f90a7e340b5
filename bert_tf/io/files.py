"""Reading files that users give.

A path is checked before it is opened: opening a pipe waits until somebody writes to it, and a
device may have no end. Each reader says how many bytes it reads at most.
"""

import contextlib
import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from bert_tf.errors import UserError
from bert_tf.io.remote import fetched, local_path

GZIP_MAGIC = b"\x1f\x8b"
# The most bytes of a configuration or a vocabulary, of a graph or a LiteRT file, of data that is
# read as a whole, and of a file of weights or of other data.
SMALL, GRAPH, WHOLE, LARGEST = 2**28, 2**31, 2**34, 2**38
_LONGEST_LINE = 2**26


def is_there(path: str | os.PathLike, what: str = "file", most: int = LARGEST) -> bool:
    """Whether there is a file at `path`, or a link to one; `what` names its role in messages.

    Anything that is no file, or has more than `most` bytes, is a UserError.
    """
    path = fetched(path, is_file=True)
    if path.is_file():
        if path.stat().st_size > most:
            raise UserError(f"{what} has more than the {most:,} bytes allowed: {path}")
        return True
    if not os.path.lexists(path):
        return False
    kind = "a pipe, a device or a socket" if path.exists() else "a link to nothing"
    kind = "a folder" if path.is_dir() else kind
    raise UserError(f"{what} is {kind}, not a file: {path}; remove it, or put a file there")


def check_there(path: str | os.PathLike, what: str = "file", most: int = LARGEST) -> None:
    """Raises UserError as `is_there`, and if there is nothing."""
    if not is_there(path, what, most):
        raise UserError(f"{what} not found: {path}")


@contextlib.contextmanager
def readable(path: str | os.PathLike, what: str = "file") -> Iterator[None]:
    """Turns an error of the system while `path` is read into a `UserError`."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what} cannot be read: {path} ({error.strerror})") from None


def read_bytes(path: str | os.PathLike, what: str = "file", most: int = SMALL) -> bytes:
    """The whole content of `path`, which must not be empty."""
    with readable(path, what):
        check_there(path, what, most)
        data = local_path(path).read_bytes()
    if not data:
        raise UserError(f"{what} is empty: {path}")
    return data


def read_text(path: str | os.PathLike, what: str = "file", most: int = SMALL) -> str:
    """The whole text of `path`, plain or gzipped, which must be UTF-8."""
    data = read_bytes(path, what, most)
    if data.startswith(GZIP_MAGIC):
        with open_maybe_gzipped(path, what) as (content, _):
            data = content.read(most + 1)
        if len(data) > most:
            raise UserError(f"{what} has more than the {most:,} bytes allowed, unpacked: {path}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{what} is not UTF-8: {path}, line {line}, byte {error.start} "
            f"(0x{data[error.start]:02x}); convert it to UTF-8"
        ) from None


def ending(path: str | os.PathLike) -> str:
    """The ending of a name: "tsv" for a.tsv and for a.tsv.gz."""
    return os.path.basename(path).removesuffix(".gz").rpartition(".")[2]


def first_of(files: Sequence[str | os.PathLike]) -> str:
    """The name of some files in messages, such as "a.txt and 2 more"."""
    return f"{files[0]}" + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def checksum(path: str | os.PathLike) -> str:
    """The SHA-256 of a file, in hexadecimal. Raises OSError, or as `is_there`."""
    is_there(path)
    with open(local_path(path), "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def lines_of(content: BinaryIO | io.BufferedIOBase, name: str) -> Iterator[bytes]:
    """The lines of an opened file. Raises UserError if one is too long, as in a device."""
    for line in iter(lambda: content.readline(_LONGEST_LINE + 1), b""):
        if len(line) > _LONGEST_LINE:
            raise UserError(f"{name} has a line of more than {_LONGEST_LINE:,} bytes; divide it")
        yield line


@contextlib.contextmanager
def open_maybe_gzipped(
    path: str | os.PathLike, what: str = "file"
) -> Iterator[tuple[io.BufferedIOBase, BinaryIO]]:
    """Yields a file's content, unpacked if it is gzipped, and the file itself for its position."""
    with readable(path, what):
        check_there(path, what)
        try:
            with open(local_path(path), "rb") as file:
                is_gzipped = file.read(2) == GZIP_MAGIC
                file.seek(0)
                with gzip.GzipFile(fileobj=file) if is_gzipped else file as content:
                    yield content, file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UserError(
                f"{what} is damaged gzip data: {path} ({error}); copy or download it again"
            ) from None
