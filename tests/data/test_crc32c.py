"""CRC-32C as in RFC 3720, appendix B.4, and as TensorFlow writes it."""

import struct

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.crc32c import crc32c, masked_crc32c


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_known_checksums(data, expected):
    assert crc32c([data]).tolist() == [expected]


def test_strings_of_any_length_together_as_tensorflow_writes_them(tmp_path):
    random = np.random.default_rng(0)
    strings = [random.bytes(size) for size in (1, 2, 3, 4, 5, 8, 100, 511, 512, 513, 1024, 5000)]
    with tf.io.TFRecordWriter(str(tmp_path / "file")) as writer:
        for string in strings:
            writer.write(string)
    data, place, written = (tmp_path / "file").read_bytes(), 0, []
    for string in strings:
        place += 12 + len(string) + 4
        written += struct.unpack_from("<I", data, place - 4)
    assert masked_crc32c(strings).tolist() == written
