"""A plan's token ranges to padded rows of token ids, `[CLS] A [SEP] B [SEP]` or `[CLS] A [SEP]`."""

from typing import NamedTuple

import numpy as np

from bert_tf.data.corpora.pairing import Plan


class PackedRows(NamedTuple):
    """Rows of ids with the bounds of their segments.

    ids: int32 [rows, max_length], padded with the padding id.
    first_length: int32 [rows], tokens of `[CLS] A [SEP]`, which have type 0.
    length: int32 [rows], all tokens of the row; those after `first_length` have type 1.
    """

    ids: np.ndarray
    first_length: np.ndarray
    length: np.ndarray


def pack(
    tokens: np.ndarray, plan: Plan, max_length: int, cls_id: int, sep_id: int, pad_id: int
) -> PackedRows:
    """Copies the planned ranges of `tokens` ([tokens], any integer) into rows of `max_length`.

    >>> tokens = np.array([10, 11, 12, 13])
    >>> starts, ends = np.array([0]), np.array([2])
    >>> pair = Plan(starts, ends, starts + 2, ends + 2, np.array([False]))
    >>> packed = pack(tokens, pair, max_length=8, cls_id=2, sep_id=3, pad_id=0)
    >>> packed.ids.tolist(), packed.first_length.tolist(), packed.length.tolist()
    ([[2, 10, 11, 3, 12, 13, 3, 0]], [4], [7])
    """
    a_length = plan.a_end - plan.a_start
    b_length = plan.b_end - plan.b_start
    first_length = a_length + 2
    length = first_length + np.where(b_length > 0, b_length + 1, 0)

    position = np.arange(max_length)[None, :]
    in_a = (position >= 1) & (position < first_length[:, None] - 1)
    in_b = (position >= first_length[:, None]) & (position < length[:, None] - 1)
    in_text = in_a | in_b
    shift = np.where(in_a, (plan.a_start - 1)[:, None], (plan.b_start - first_length)[:, None])
    source = position + shift
    ids = np.full(in_text.shape, pad_id, np.int32)
    ids[in_text] = tokens[source[in_text]]
    rows = np.arange(len(ids))
    ids[:, 0] = cls_id
    ids[rows, first_length - 1] = sep_id
    ids[rows, length - 1] = sep_id
    return PackedRows(ids, first_length.astype(np.int32), length.astype(np.int32))
