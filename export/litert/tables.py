"""Flatbuffers without generated code: tables by the numbers of their fields.

A schema file (.fbs) lists the fields of a table; the first has number 0, and a union takes two
numbers, its type and its value. The package `flatbuffers` reads and writes the bytes.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from flatbuffers import Builder, encode, number_types, table


class Byte(int):
    """A number of 8 bits, as the value of a field."""


class Word(int):
    """A number of 32 bits, as the value of a field."""


class Placed(int):
    """The offset of something that is in the builder already, as the value of a field."""


Fields = Mapping[int, Any]


def add_table(builder: Builder, fields: Fields) -> Placed:
    """Writes a table, given the values of its fields by their numbers.

    A value is a `Byte`, a `Word`, `Placed`, a text, `bytes`, a table's fields, or a list of tables.
    """
    values = {number: _placed(builder, value) for number, value in fields.items()}
    builder.StartObject(max(values, default=-1) + 1)
    for number, value in values.items():
        if isinstance(value, Byte):
            builder.PrependUint8Slot(number, value, 0)
        elif isinstance(value, Word):
            builder.PrependUint32Slot(number, value, 0)
        else:
            builder.PrependUOffsetTRelativeSlot(number, value, 0)
    return Placed(builder.EndObject())


def add_bytes(builder: Builder, content: bytes) -> Placed:
    """Writes a vector of bytes; its first byte is aligned."""
    builder.Prep(16, len(content))  # the alignment of buffers in a TFLite file
    return Placed(builder.CreateByteVector(content))


def _placed(builder: Builder, value: Any) -> int:
    """A value of a field, written unless it is a number."""
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return Placed(builder.CreateString(value))
    if isinstance(value, bytes):
        return add_bytes(builder, value)
    if isinstance(value, Mapping):
        return add_table(builder, value)
    places = [_placed(builder, table) for table in value]
    builder.StartVector(number_types.UOffsetTFlags.bytewidth, len(places), 4)
    for place in reversed(places):
        builder.PrependUOffsetTRelative(place)
    return Placed(builder.EndVector())


class FlatTable:
    """A table in a flatbuffer that may be damaged. Missing fields are 0 or empty.

    If damaged, reading raises a struct.error, a TypeError or a ValueError, or gives wrong values.
    """

    def __init__(self, data: bytes, position: int):
        self.position = position
        self._data = data
        self._table = table.Table(data, position)

    @classmethod
    def root(cls, data: bytes) -> "FlatTable":
        return cls(data, encode.Get(number_types.UOffsetTFlags.packer_type, data, 0))

    def word(self, number: int) -> int:
        return self._table.GetSlot(4 + 2 * number, 0, number_types.Uint32Flags)

    def byte(self, number: int) -> int:
        return self._table.GetSlot(4 + 2 * number, 0, number_types.Uint8Flags)

    def text(self, number: int) -> str:
        return self.content(number).decode()

    def content(self, number: int) -> bytes:
        """A text's bytes, or a vector of bytes."""
        place = self._field(number)
        return self._table.String(place) if place else b""

    def tables(self, number: int) -> list["FlatTable"]:
        places = map(self._table.Indirect, self._elements(number))
        return [FlatTable(self._data, place) for place in places]

    def words(self, number: int) -> list[int]:
        """A vector of signed numbers of 32 bits."""
        return [self._table.Get(number_types.Int32Flags, each) for each in self._elements(number)]

    def target(self, number: int) -> int | None:
        """Where in the flatbuffer the text, table or vector of a field is."""
        place = self._field(number)
        return self._table.Indirect(place) if place else None

    def _field(self, number: int) -> int:
        """Where the field is, or 0 if the table does not have it."""
        offset = self._table.Offset(4 + 2 * number)
        return self.position + offset if offset else 0

    def with_words(self, number: int, words: Sequence[int]) -> bytes:
        """The flatbuffer, in which `words` replace the elements of a vector of the same length."""
        places = self._elements(number)
        return (
            self._data[: places.start]
            + struct.pack(f"<{len(places)}i", *words)
            + (self._data[places.stop :])
        )

    def _elements(self, number: int) -> range:
        """Where the elements of a vector are; each has four bytes."""
        offset = self._table.Offset(4 + 2 * number)
        if not offset:
            return range(0)
        count, start = self._table.VectorLen(offset), self._table.Vector(offset)
        if count > 100_000:  # a damaged file may claim any number
            raise ValueError(f"a vector has {count} elements")
        return range(start, start + 4 * count, 4)
