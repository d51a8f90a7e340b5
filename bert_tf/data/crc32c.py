"""CRC-32C, the checksum of TFRecord files, of many byte strings at once.

A CRC is linear over XOR: it is the XOR of what each byte adds, and that depends only on the byte
and its distance from the end. So a table of both, and NumPy, do for a thousand strings what Python
could not do one byte after the other.
"""

import functools
from collections.abc import Sequence

import numpy as np

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed
_COLUMNS = 512
_MASK_DELTA = 0xA282EAD8


def masked_crc32c(strings: Sequence[bytes]) -> np.ndarray:
    """The checksums as TFRecord files hold them, uint32 [strings].

    Source: tensorflow/core/lib/hash/crc32c.h, which rotates and shifts each so that a checksum of
    data that hold checksums is still a good one.
    """
    crc = crc32c(strings)
    return (crc >> 15 | crc << 17) + np.uint32(_MASK_DELTA)


def crc32c(strings: Sequence[bytes]) -> np.ndarray:
    """The CRC-32C of each string, uint32 [strings]."""
    longest = max(map(len, strings))
    width = -(-longest // _COLUMNS) * _COLUMNS
    # Zeros in front add nothing. The CRC's first state, all ones, turns the first four bytes round;
    # what a shorter string leaves of it comes out at the end.
    data = np.zeros((len(strings), width), np.uint8)
    for row, string in zip(data, strings, strict=True):
        row[width - len(string) :] = np.frombuffer(string, np.uint8)
        row[width - len(string) :][:4] ^= 0xFF
    crc = np.zeros(len(strings), np.uint32)
    for start in range(0, width, _COLUMNS):
        block = data[:, start : start + _COLUMNS]
        block[:, :4] ^= crc.astype("<u4")[:, None].view(np.uint8)
        crc = np.bitwise_xor.reduce(_table()[np.arange(_COLUMNS), block], axis=1)
    rest = [0xFFFFFFFF >> 8 * min(len(string), 4) for string in strings]
    return ~(crc ^ np.array(rest, np.uint32))


@functools.cache
def _table() -> np.ndarray:
    """What each byte adds at each place of a block: uint32 [_COLUMNS, 256]."""
    last: np.ndarray = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        last = (last >> 1) ^ (last & 1) * np.uint32(_POLYNOMIAL)
    rows = [last]
    while len(rows) < _COLUMNS:
        rows.append(rows[-1] >> 8 ^ last[rows[-1] & 0xFF])
    return np.stack(rows[::-1])
