"""TFRecord files are read at any place, and damage is named with file and record."""

import gzip

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.records.files import RecordFile
from bert_tf.errors import UserError

DATA = [f"record {number} {'x' * (number % 50)}".encode() for number in range(3000)]


def write(path, strings=DATA):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for string in strings:
            writer.write(string)
    return path


def test_any_run_of_records_is_read(tmp_path):
    file = RecordFile(write(tmp_path / "file"))
    assert len(file) == len(DATA)
    for first, last in [(0, 1), (0, 3000), (1023, 1025), (2999, 3000)]:
        assert file.read(first, last) == DATA[first:last]


def test_a_file_without_records_is_one(tmp_path):
    assert len(RecordFile(write(tmp_path / "file", []))) == 0


def damage(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))


def test_a_changed_record_is_named(tmp_path):
    path = write(tmp_path / "file")
    file = RecordFile(path)
    damage(path, int(file.starts[1500]) + 14)
    assert file.read(0, 1500) == DATA[:1500]
    with pytest.raises(UserError, match="file, record 1501 is damaged: its checksum is wrong"):
        file.read(1490, 1600)


@pytest.mark.parametrize("record", [1, 1023, 1024, 2999])
def test_a_changed_length_is_found_at_once(tmp_path, record):
    path = write(tmp_path / "file")
    place = int(RecordFile(path).starts[record])
    for byte in (0, 1, 7):
        damage(path, place + byte)
        with pytest.raises(UserError, match=f"record {record + 1} is damaged: its length is wrong"):
            RecordFile(path)
        damage(path, place + byte)


def test_a_file_cut_off_is_found_at_once(tmp_path):
    path = write(tmp_path / "file")
    starts = RecordFile(path).starts
    whole = path.read_bytes()
    for cut in (3, 12, 15, len(DATA[-1]) + 15):
        path.write_bytes(whole[: int(starts[-2]) + cut])
        with pytest.raises(UserError, match="record 3000 is damaged: the file ends in it"):
            RecordFile(path)
    path.write_bytes(whole)
    file = RecordFile(path)
    path.write_bytes(whole[:-30])
    with pytest.raises(UserError, match="file became shorter during the run"):
        file.read(2990, 3000)


def test_a_file_that_is_no_tfrecord_file_is_reported(tmp_path):
    for data, message in [
        (b"Call me Ishmael. Some years ago", "not a TFRecord file"),
        (np.random.default_rng(0).bytes(9999), "not a TFRecord file"),
        (gzip.compress(write(tmp_path / "good").read_bytes()), "is compressed"),
    ]:
        path = tmp_path / "file"
        path.write_bytes(data)
        with pytest.raises(UserError, match=message) as error:
            RecordFile(path)
        assert str(path) in str(error.value)
    with pytest.raises(UserError, match="cannot be read: .*none"):
        RecordFile(tmp_path / "none")
