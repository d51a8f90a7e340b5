"""Flatbuffer tables: what is written is read back, also by TensorFlow's generated code."""

import struct

import numpy as np
import pytest
from flatbuffers import Builder
from tensorflow.lite.python import schema_py_generated as schema

from bert_tf.export.litert.tables import Byte, FlatTable, Word, add_table


def written(fields):
    builder = Builder(0)
    builder.Finish(add_table(builder, fields), b"TFL3")
    return bytes(builder.Output())


def test_generated_code_reads_the_same():
    buffers = [{}, {0: b"\x00weights"}]
    tensor = {1: Byte(2), 2: Word(1), 3: "ids"}
    data = written({0: Word(3), 2: [{0: [tensor]}], 3: "some model", 4: buffers})

    model = schema.Model.GetRootAs(data)

    assert (model.Version(), model.Description()) == (3, b"some model")
    assert model.Buffers(0).DataIsNone()
    assert model.Buffers(1).DataAsNumpy().tobytes() == b"\x00weights"
    read = model.Subgraphs(0).Tensors(0)
    assert (read.Type(), read.Buffer(), read.Name()) == (schema.TensorType.INT32, 1, b"ids")


def test_what_generated_code_writes_is_read():
    model = schema.ModelT()
    subgraph = schema.SubGraphT()
    subgraph.inputs = np.array([4, 2], np.int32)
    model.version, model.description, model.subgraphs = 3, "café", [subgraph]
    builder = Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")

    root = FlatTable.root(bytes(builder.Output()))

    assert (root.word(0), root.text(3), root.content(3)) == (3, "café", "café".encode())
    assert root.tables(2)[0].words(1) == [4, 2]
    assert root.tables(7) == [] and root.target(7) is None


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17])
def test_bytes_are_aligned(size):
    data = written({0: b"\x07" * 5, 1: b"\xff" * size, 2: "x"})

    root = FlatTable.root(data)

    assert (root.content(0), root.content(1)) == (b"\x07" * 5, b"\xff" * size)
    assert (root.target(0) + 4) % 16 == (root.target(1) + 4) % 16 == 0


def test_what_lies_beyond_the_end_is_an_error():
    data = written({2: [{0: "a text"}] * 3})

    for size in range(len(data)):
        try:
            texts = [each.text(0) for each in FlatTable.root(data[:size]).tables(2)]
        except (struct.error, ValueError):
            continue
        # A text at the end is cut.
        assert len(texts) == 3 and all("a text".startswith(each.rstrip("\0")) for each in texts)


def test_a_vector_of_any_length_is_refused():
    data = bytearray(written({2: [{}, {}]}))
    place = FlatTable.root(bytes(data)).target(2)
    data[place : place + 4] = (2**31).to_bytes(4, "little")

    with pytest.raises(ValueError, match="a vector has 2147483648 elements"):
        FlatTable.root(bytes(data)).tables(2)
