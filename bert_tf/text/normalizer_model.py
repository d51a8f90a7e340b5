"""tf-text's op FastBertNormalize, which replaces characters one by one, and its models.

The op looks up the bytes of each character in a trie, and also each run of bytes that begins a
character and breaks off. A value of the trie says where the replacement lies in a pool of strings.
The trie is a double array in the form of darts-clone: units of 32 bits, in which the children of a
node lie at the node's base XOR their byte.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import flatbuffers
import numpy as np
import tensorflow as tf

# A value of the trie: this bit, the replacement's place in the pool, and its length in bytes.
_REPLACED = 1 << 30
_LENGTH_BITS = 6
# Bits of a unit of the double array. The lowest eight are the byte that leads to it.
_VALUE = 1 << 31
_HAS_VALUE = 1 << 8
_OFFSET_SHIFT = 10
_MAX_OFFSET = 1 << 21
_BLOCK = 256  # units; bases and their children lie in the same block
_SEARCHED = 16  # blocks are searched for a place: earlier ones are nearly full
_CODE_POINTS = 0x110000
# A node of the trie: its value, or 0 for none, and the numbers of its children by their bytes.
_Node = tuple[int, tuple[tuple[int, int], ...]]


class Normalized(NamedTuple):
    """Texts from the normalizer, and the byte of the original that each byte comes from."""

    texts: tf.Tensor  # string [batch]
    splits: tf.Tensor  # int32 [batch + 1], where the bytes of each text lie in `origins`
    origins: tf.Tensor  # int32, bytes of the original text, with one more for each text's end


def normalize(texts: tf.Tensor, model: np.ndarray) -> Normalized:
    """Replaces characters of `texts`, string [batch]; `model` is from `normalizer_model`."""
    import tensorflow_text as tf_text

    normalizer = tf_text.FastBertNormalizer(model_buffer=tf.constant(model))
    normalized, origins = normalizer.normalize_with_offsets(texts)
    splits = tf.cast(origins.row_splits, tf.int32)
    return Normalized(normalized, splits, tf.cast(origins.values, tf.int32))


def normalizer_model(
    replacements: Mapping[str, Sequence[int] | np.ndarray], broken: str = ""
) -> np.ndarray:
    """The model, uint8 [bytes], for `tensorflow_text.FastBertNormalizer(model_buffer=…)`.

    `replacements` are strings of at most 63 bytes of UTF-8, each with the code points that it
    replaces. `broken` replaces bytes that are not UTF-8.
    """
    # The op requires a pool, even if all strings are empty.
    pool, values = bytearray(b" "), np.zeros(_CODE_POINTS, np.int64)

    def value(string: str) -> int:
        """The trie's value for a character that becomes `string`."""
        data = string.encode()
        assert len(data) < 1 << _LENGTH_BITS, string
        place = len(pool) if data else 0
        pool.extend(data)
        return _REPLACED | place << _LENGTH_BITS | len(data)

    for string, code_points in replacements.items():
        values[code_points] = value(string)
    units = _double_array(_utf8_trie(values, value(broken)))
    builder = flatbuffers.Builder(0)
    trie = builder.CreateNumpyVector(units)
    strings = builder.CreateNumpyVector(np.frombuffer(bytes(pool), np.uint8))
    # The fields of FastBertNormalizerModel. Field 0 only records how tf-text made the model.
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(1, trie, 0)
    builder.PrependInt32Slot(2, int(values[0]), 0)
    builder.PrependUOffsetTRelativeSlot(3, strings, 0)
    builder.Finish(builder.EndObject())
    return np.frombuffer(bytes(builder.Output()), np.uint8)


def _utf8_trie(values: np.ndarray, broken: int) -> list[_Node]:
    """The nodes of the trie, each before its parents; 0 in `values` [_CODE_POINTS] is no value."""
    numbers: dict[_Node, int] = {}

    def node(value: int, children: dict[int, int]) -> int:
        return numbers.setdefault((value, tuple(children.items())), len(numbers))

    known: dict[bytes, int] = {}

    def begun(first: int, last: int, missing: int) -> int:
        """The node of the leading bytes of characters `first` to `last`; `missing` bytes follow."""
        of = values[first : last + 1]
        if missing == 1 and of.tobytes() not in known:
            ends = {0x80 | int(place): node(int(of[place]), {}) for place in np.flatnonzero(of)}
            known[of.tobytes()] = node(broken, ends)
        if missing == 1:
            return known[of.tobytes()]
        size = 1 << 6 * (missing - 1)
        children = {
            0x80 | start // size & 0x3F: begun(start, start + size - 1, missing - 1)
            for start in range(first, last + 1, size)
        }
        return node(broken, children)

    roots = {byte: node(int(values[byte]), {}) for byte in range(1, 0x80) if values[byte]}
    roots |= {byte: node(broken, {}) for byte in range(0x80, 0x100)}
    # A second byte that would give a longer form than needed, or a surrogate, begins no character.
    roots |= {0xC0 | n: begun(n << 6, (n << 6) + 0x3F, 1) for n in range(2, 0x20)}
    roots |= {0xE0 | n: begun(n << 12, (n << 12) + 0xFFF, 2) for n in range(1, 0x10)}
    roots |= {0xE0: begun(0x800, 0xFFF, 2), 0xED: begun(0xD000, 0xD7FF, 2)}
    roots |= {0xF0 | n: begun(n << 18, (n << 18) + 0x3FFFF, 3) for n in range(1, 4)}
    roots |= {0xF0: begun(0x10000, 0x3FFFF, 3), 0xF4: begun(0x100000, 0x10FFFF, 3)}
    node(0, roots)
    return [*numbers]


def _double_array(nodes: list[_Node]) -> np.ndarray:
    """Writes nodes as units: uint32, a whole number of blocks. The root is unit 0."""
    bases = _bases([[*([0] if value else []), *dict(children)] for value, children in nodes])
    units = np.zeros(-(-(max(bases) + 1) // _BLOCK) * _BLOCK, np.uint32)

    def unit(place: int, number: int, byte: int) -> int:
        offset = place ^ bases[number]
        assert offset < _MAX_OFFSET
        return offset << _OFFSET_SHIFT | (_HAS_VALUE if nodes[number][0] else 0) | byte

    units[0] = unit(0, len(nodes) - 1, 0)
    for (value, children), base in zip(nodes, bases, strict=True):
        if value:
            units[base] = value | _VALUE
        for byte, number in children:
            units[base ^ byte] = unit(base ^ byte, number, byte)
    return units


def _bases(children: list[list[int]]) -> list[int]:
    """A base for each node, all different, so that no two children share a unit."""
    bases = np.zeros(len(children), np.int64)
    leaves = np.array([each == [0] for each in children])
    blocks = int((~leaves).sum() + leaves.sum() // _BLOCK + 3)
    free, unused = np.ones((2, blocks, _BLOCK), bool)
    free[0, 0] = False  # the root's own unit
    newest = 0
    for number in sorted(np.flatnonzero(~leaves), key=lambda each: -len(children[each])):
        family = np.array(children[number])
        # The last of the blocks searched is empty.
        oldest = max(0, newest + 1 - _SEARCHED)
        places = np.arange(_BLOCK)[:, None] ^ family
        fits = free[oldest : newest + 2, places].all(axis=2) & unused[oldest : newest + 2]
        block, base = np.unravel_index(fits.argmax(), fits.shape)
        free[oldest + block, base ^ family] = False
        unused[oldest + block, base] = False
        bases[number] = (oldest + block) * _BLOCK + base
        newest = max(newest, int(oldest + block))
    # A leaf's only child, its value, is at its base, so the leaves fill the gaps.
    bases[leaves] = np.flatnonzero(free & unused)[: leaves.sum()]
    return bases.tolist()
