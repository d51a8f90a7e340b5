"""The fingerprint of training data tells them from others, and nothing else."""

import dataclasses

import numpy as np
import pytest

from bert_tf.data.batching import EncodedRows
from bert_tf.data.question_windows import WindowRows
from bert_tf.training import fingerprint as module
from bert_tf.training.fingerprint import fingerprint


def windows():
    """Three rows of 2, 3 and 2 tokens."""
    ids = np.arange(5, 12, dtype=np.int32)
    encoded = EncodedRows(ids, np.zeros(7, np.int32), np.array([0, 2, 5, 7]))
    return WindowRows(encoded, np.array([1, 0, 1], np.int32), np.array([1, 2, 1], np.int32))


def test_the_same_rows_have_the_same_fingerprint():
    assert fingerprint(windows()) == fingerprint(windows())
    assert len(fingerprint(windows())) == 16


def changed(rows, **encoded):
    return dataclasses.replace(rows, encoded=dataclasses.replace(rows.encoded, **encoded))


@pytest.mark.parametrize(
    "other",
    [
        lambda rows: changed(rows, word_ids=rows.encoded.word_ids[::-1]),
        lambda rows: changed(rows, type_ids=rows.encoded.type_ids + 1),
        lambda rows: changed(rows, starts=np.array([0, 3, 5, 7])),
        lambda rows: changed(rows, starts=np.array([0, 2, 5])),
        lambda rows: dataclasses.replace(rows, starts=rows.starts + 1),
        lambda rows: dataclasses.replace(rows, ends=rows.ends[::-1] + 1),
    ],
)
def test_other_tokens_segments_rows_or_targets_have_another(other):
    assert fingerprint(other(windows())) != fingerprint(windows())


def test_all_rows_count_however_many_there_are(monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 2)
    ids = windows().encoded.word_ids.copy()
    ids[-1] += 1

    assert fingerprint(changed(windows(), word_ids=ids)) != fingerprint(windows())
