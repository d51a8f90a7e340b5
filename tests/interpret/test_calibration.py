"""Reliability, the expected calibration error and confusions, worked out by hand."""

import numpy as np

from bert_tf.interpret.sections import confusion_counts
from bert_tf.tasks.uncertainty import reliability


def test_bins_hold_their_upper_edge():
    sure, right = np.array([0.2, 0.5, 0.51, 1.0]), np.array([1, 0, 1, 1]) > 0
    counts, confidence, accuracy, _ = reliability(sure, right, bins=2)
    assert counts.tolist() == [2, 2]
    np.testing.assert_allclose(confidence, [0.35, 0.755])
    np.testing.assert_allclose(accuracy, [0.5, 1])


def test_the_error_weighs_bins_by_their_predictions():
    confidence = np.array([0.9] * 8 + [0.6] * 2)
    right = np.array([True] * 4 + [False] * 4 + [True] * 2)
    # 8 of 10 are 0.4 too sure, 2 of 10 are 0.4 not sure enough.
    np.testing.assert_allclose(reliability(confidence, right)[3], 0.4)


def test_who_is_right_as_often_as_sure_has_no_error():
    *_, error = reliability(np.array([0.75] * 4), np.array([True, True, True, False]))
    assert error == 0


def test_confusions_count_what_was_given_and_predicted():
    _, counts = confusion_counts(("a", "b"), np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0]))
    assert counts.tolist() == [[1, 1], [1, 2]]


def test_rare_classes_become_one():
    given = np.array([0, 1, 1, 1, 2, 3, 3])
    names, counts = confusion_counts(tuple("abcd"), given, given[::-1], most=3)
    assert names == ("b", "d", "(all others)")
    assert counts.sum() == 7
    assert counts.sum(axis=1).tolist() == [3, 2, 2]
