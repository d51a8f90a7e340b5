"""Answers given as bytes are found among the tokens of windows."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.text import Tokenizer, WindowPreprocessor
from bert_tf.text.windows import find_answers
from tests.text.vocabularies import SPECIAL


@pytest.fixture(scope="module")
def preprocess() -> WindowPreprocessor:
    vocabulary = [*SPECIAL, *"abcdefghijklmnopqrstuvwxyz", "##y", "##z"]
    return WindowPreprocessor(Tokenizer(vocabulary), max_length=9, stride=3, max_question_length=2)


def found(preprocess, contexts: list[str], answers: list[str | None]) -> list[list[str]]:
    """For each question the answer that each of its windows shows; "" at [CLS]."""
    spans = [
        (context.encode().index(answer.encode()), len(answer.encode())) if answer else (-1, 0)
        for context, answer in zip(contexts, answers, strict=True)
    ]
    windows = preprocess((["q"] * len(contexts), contexts))
    starts = tf.constant([start for start, _ in spans])
    ends = tf.constant([start + size for start, size in spans])
    first, last = (each.numpy() for each in find_answers(windows, starts, ends))
    shown = [[] for _ in contexts]
    for window, row in enumerate(windows.rows.numpy()):
        text = contexts[row].encode()
        assert (first[window] == 0) == (last[window] == 0)
        if first[window] == 0:
            shown[row].append("")
            continue
        start = windows.starts[window, first[window]].numpy()
        shown[row].append(text[start : windows.ends[window, last[window]].numpy()].decode())
    return shown


def test_windows_that_do_not_show_the_whole_answer_point_at_the_first_token(preprocess):
    contexts = ["a b c d e f g h", "x y z", "é ü a"]
    assert found(preprocess, contexts, ["d e", "y z", "ü"]) == [["d e", "d e"], ["y z"], ["ü"]]
    assert found(preprocess, contexts[:1], ["c d e"]) == [["c d e", ""]]
    assert found(preprocess, contexts[:1], ["b c d e f g h"]) == [["", ""]]


def test_no_answer_points_at_the_first_token(preprocess):
    contexts = ["a b c d e f g h", "", "x"]
    assert found(preprocess, contexts, [None, None, "x"]) == [["", ""], [""], ["x"]]


def test_an_answer_within_a_piece_is_the_piece(preprocess):
    (windows,) = found(preprocess, ["a unbroken b"], ["broke"])
    assert windows == ["unbroken"]  # [UNK] is one piece
    assert found(preprocess, ["a xyz b"], ["y"]) == [["y"]]
    assert found(preprocess, ["a xyz b"], [" xy"]) == [["xy"]]


def test_it_works_in_a_dataset_and_on_an_empty_batch(preprocess):
    @tf.function
    def label(contexts, starts, ends):
        return find_answers(preprocess((contexts, contexts)), starts, ends)

    dataset = tf.data.Dataset.from_tensors((["a b"], [2], [3])).map(label)
    ((start, end),) = dataset.as_numpy_iterator()
    assert start.tolist() == end.tolist() == [5]
    none = tf.constant([], tf.int32)
    start, _ = label(tf.constant([], tf.string), none, none)
    assert start.dtype == np.int32 and start.shape == (0,)
