"""TFRecord files, read at any place.

A record is its length (8 bytes), a checksum of the length, the data and a checksum of the data
(tensorflow/core/lib/io/record_writer.h). Going once from length to length shows where every record
is; from then on any can be read.
"""

import array
import struct
from collections.abc import Iterable
from pathlib import Path

import google_crc32c
import numpy as np

from bert_tf.errors import UserError

# What is added to a checksum; see `masked_crc32c`.
_MASK_DELTA = 0xA282EAD8
_HEADER, _CHECKSUM = 12, 4
_GZIP_MAGIC = b"\x1f\x8b"
# Bytes read at a time in search of the records, and records whose lengths are checked at a time.
_BUFFER, _CHECKED = 1 << 20, 1024


class RecordFile:
    """One TFRecord file.

    >>> import tensorflow as tf
    >>> with tf.io.TFRecordWriter("train.tfrecord") as file:
    ...     for record in (b"one", b"three"):
    ...         file.write(record)
    >>> file = RecordFile(Path("train.tfrecord"))
    >>> len(file), file.starts.tolist(), file.read(0, 2)
    (2, [0, 19, 40], [b'one', b'three'])

    Args:
        path: an uncompressed TFRecord file.

    Attributes:
        path: as given.
        starts: int64 [records + 1], where each record starts, and where the file ends.

    Raises:
        UserError: it cannot be read, is compressed, damaged, cut off or no TFRecord file.
    """

    def __init__(self, path: Path):
        self.path = path
        starts, headers = array.array("q", [0]), []
        try:
            size = path.stat().st_size
            with open(path, "rb", buffering=_BUFFER) as file:
                while starts[-1] < size:
                    file.seek(starts[-1])
                    header = file.read(_HEADER)
                    if len(header) < _HEADER:
                        break
                    headers.append(header)
                    (length,) = struct.unpack_from("<Q", header)
                    # Wrong lengths are found when the checksums are looked at.
                    starts.append(min(starts[-1] + _HEADER + length + _CHECKSUM, size + 1))
                    if len(headers) == _CHECKED:
                        self._check(headers, len(starts) - 1)
                        headers = []
        except OSError as error:
            raise _unreadable(path, error) from None
        self._check(headers, len(starts) - 1)
        if starts[-1] != size:
            number = len(starts) - 1 if starts[-1] < size else len(starts) - 2
            raise _damaged(path, number, f"the file ends in it, after {size:,} bytes")
        self.starts = np.array(starts, np.int64)

    def _check(self, headers: list[bytes], until: int) -> None:
        """Checks the lengths of the records before number `until`."""
        if not headers:
            return
        good = _computed(h[:8] for h in headers) == _checksums(h[8:] for h in headers)
        if good.all():
            return
        number = until - len(headers) + int(np.argmin(good))
        if number:
            raise _damaged(self.path, number, "its length is wrong")
        if headers[0].startswith(_GZIP_MAGIC):
            raise UserError(f"TFRecord file is compressed: {self.path}; decompress it with zcat")
        raise UserError(f"not a TFRecord file: {self.path}")

    def __len__(self) -> int:
        return len(self.starts) - 1

    def read(self, first: int, last: int) -> list[bytes]:
        """The data of the records from `first` to before `last`.

        Raises:
            UserError: the file cannot be read, or has changed; a checksum is wrong.
        """
        starts = self.starts[first : last + 1] - self.starts[first]
        try:
            with open(self.path, "rb") as file:
                file.seek(int(self.starts[first]))
                data = file.read(int(starts[-1]))
        except OSError as error:
            raise _unreadable(self.path, error) from None
        if len(data) < starts[-1]:
            raise UserError(
                f"{self.path} has become shorter since the run began; start the run again"
            )
        bounds = starts.tolist()
        records = [
            data[start + _HEADER : end - _CHECKSUM]
            for start, end in zip(bounds[:-1], bounds[1:], strict=True)
        ]
        good = _computed(records) == _checksums(data[end - _CHECKSUM : end] for end in bounds[1:])
        if not good.all():
            raise _damaged(self.path, first + int(np.argmin(good)), "its checksum is wrong")
        return records


def masked_crc32c(data: bytes) -> int:
    """The CRC-32C of some data in the form in which TFRecord files hold it.

    Source: tensorflow/core/lib/hash/crc32c.h, which rotates it and adds a constant, so that a
    checksum of data that contains checksums is still good.

    >>> hex(masked_crc32c(b"123456789"))
    '0xc78ab0e5'
    """
    crc = google_crc32c.value(data)
    return (crc >> 15 | crc << 17) + _MASK_DELTA & 0xFFFFFFFF


def _computed(strings: Iterable[bytes]) -> np.ndarray:
    """The checksum of each string: uint32 [strings]."""
    return np.fromiter(map(masked_crc32c, strings), np.uint32)


def _checksums(fields: Iterable[bytes]) -> np.ndarray:
    """The checksums that a file holds, each of 4 bytes: uint32 [fields]."""
    return np.frombuffer(b"".join(fields), "<u4")


def _damaged(path: Path, number: int, how: str) -> UserError:
    return UserError(f"{path}, record {number + 1} is damaged: {how}; copy or make the file again")


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"TFRecord file cannot be read: {path} ({error.strerror})")
