"""TFRecord files, of which any record can be read.

A record is its length (8 bytes), a checksum of the length, the data and a checksum of the data
(tensorflow/core/lib/io/record_writer.h). One pass from length to length finds the start of every
record; after that, any record can be read.
"""

import array
import itertools
import struct
from pathlib import Path

import google_crc32c
import numpy as np

from bert_tf.errors import UserError
from bert_tf.io.files import GZIP_MAGIC, is_there, readable

_MASK_DELTA = 0xA282EAD8  # added to a checksum; see `masked_crc32c`
_HEADER, _CHECKSUM = 12, 4
_BUFFER = 1 << 20  # bytes read at a time in search of the records


class RecordFile:
    """One uncompressed TFRecord file."""

    def __init__(self, path: Path):
        self.path = path
        starts = array.array("q", [0])
        with readable(path, "TFRecord file"):
            is_there(path, "TFRecord file")
            size = path.stat().st_size
            with open(path, "rb", buffering=_BUFFER) as file:
                while starts[-1] < size:
                    file.seek(starts[-1])
                    header = file.read(_HEADER)
                    if len(header) < _HEADER:
                        break
                    length, checksum = struct.unpack("<QI", header)
                    if masked_crc32c(header[:8]) != checksum:
                        raise self._wrong_length(len(starts) - 1, header)
                    starts.append(min(starts[-1] + _HEADER + length + _CHECKSUM, size + 1))
        if starts[-1] != size:
            number = len(starts) - 1 if starts[-1] < size else len(starts) - 2
            raise _damaged(path, number, f"the file ends in it, after {size:,} bytes")
        # int64 [records + 1]: where each record starts, and where the file ends.
        self.starts = np.array(starts, np.int64)

    def _wrong_length(self, number: int, header: bytes) -> UserError:
        if number:
            return _damaged(self.path, number, "its length is wrong")
        if header.startswith(GZIP_MAGIC):
            return UserError(f"TFRecord file is compressed: {self.path}; decompress it with gunzip")
        return UserError(f"not a TFRecord file: {self.path}")

    def __len__(self) -> int:
        return len(self.starts) - 1

    def read(self, first: int, last: int) -> list[bytes]:
        """The data of the records from `first` to before `last`."""
        starts = self.starts[first : last + 1] - self.starts[first]
        with readable(self.path, "TFRecord file"), open(self.path, "rb") as file:
            file.seek(int(self.starts[first]))
            data = file.read(int(starts[-1]))
        if len(data) < starts[-1]:
            raise UserError(f"{self.path} became shorter during the run; start the run again")
        records = []
        for number, (start, end) in enumerate(itertools.pairwise(starts.tolist()), first):
            record = data[start + _HEADER : end - _CHECKSUM]
            if masked_crc32c(record) != int.from_bytes(data[end - _CHECKSUM : end], "little"):
                raise _damaged(self.path, number, "its checksum is wrong")
            records.append(record)
        return records


def masked_crc32c(data: bytes) -> int:
    """A checksum as TFRecord files hold it (tensorflow/core/lib/hash/crc32c.h). It is rotated and
    shifted, so that a checksum of data that contains checksums is still good.
    """
    crc = google_crc32c.value(data)
    return (crc >> 15 | crc << 17) + _MASK_DELTA & 0xFFFFFFFF


def _damaged(path: Path, number: int, how: str) -> UserError:
    return UserError(f"{path}, record {number + 1} is damaged: {how}; copy or write the file again")
