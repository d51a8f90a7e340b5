"""Windows over long texts, as google-research/bert's run_squad cuts them, and answers in them."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.text import Tokenizer, WindowPreprocessor, slide
from bert_tf.text.windows import find_answers
from tests.text.vocabularies import SPECIAL


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer([*SPECIAL, *"abcdefghijklmnopqrstuvwxyz"])


def reference_spans(size: int, room: int, stride: int) -> list[tuple[int, int]]:
    """Start and length of each window over `size` pieces; one empty window over none."""
    spans, start = [], 0
    while start < size:
        length = min(size - start, room)
        spans.append((start, length))
        if start + length == size:
            break
        start += min(length, stride)
    return spans or [(0, 0)]


def reference_best(spans: list[tuple[int, int]], piece: int) -> int:
    """The window in which a piece has most context."""
    scores = {
        number: min(piece - start, start + length - 1 - piece) + 0.01 * length
        for number, (start, length) in enumerate(spans)
        if start <= piece < start + length
    }
    return max(scores, key=scores.get)


@pytest.mark.parametrize(("max_length", "stride"), [(12, 3), (12, 100), (9, 1), (230, 128)])
def test_windows_are_the_references(tokenizer, max_length, stride):
    sizes = [0, 1, 5, 8, 9, 10, 17, 23, 250, 333]
    short_sizes = [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]
    long = tf.ragged.range(1000, [1000 + size for size in sizes])
    short = tf.ragged.range(500, [500 + size for size in short_sizes])
    windows = slide(long, tokenizer, max_length, stride, short)
    number = 0
    for row, (size, short_size) in enumerate(zip(sizes, short_sizes, strict=True)):
        spans = reference_spans(size, max_length - short_size - 3, stride)
        for span, (start, length) in enumerate(spans):
            cls, sep, pad = tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id
            question = [cls, *range(500, 500 + short_size), sep]
            ids = [*question, *range(1000 + start, 1000 + start + length), sep]
            padding = max_length - len(ids)
            pieces = [-1] * len(question) + [*range(start, start + length)] + [-1] * (padding + 1)
            best = [piece >= 0 and reference_best(spans, piece) == span for piece in pieces]
            types = [0] * len(question) + [1] * (length + 1) + [0] * padding
            here = {key: value[number].numpy().tolist() for key, value in windows.features.items()}
            assert windows.rows[number] == row
            assert here["input_word_ids"] == ids + [pad] * padding
            assert here["input_mask"] == [1] * len(ids) + [0] * padding
            assert here["input_type_ids"] == types
            assert windows.pieces[number].numpy().tolist() == pieces
            assert windows.has_most_context[number].numpy().tolist() == best
            number += 1
    assert number == windows.rows.shape[0]


def test_rounding_breaks_ties_between_windows_as_in_the_reference(tokenizer):
    """With a short last window the scores of two windows may differ in the last bit alone."""
    for size, room, stride in itertools.product((257, 300, 311), (100, 157, 200), (50, 57, 99)):
        windows = slide(tf.ragged.range([size]), tokenizer, room + 2, stride)
        spans = reference_spans(size, room, stride)
        best = np.full(size, -1)
        pieces, chosen = windows.pieces.numpy(), windows.has_most_context.numpy()
        for number in range(len(spans)):
            best[pieces[number][chosen[number]]] = number
        assert best.tolist() == [reference_best(spans, piece) for piece in range(size)]


def test_tokens_of_the_context_know_their_bytes(tokenizer):
    contexts = ["\u00e9 b", "c d e f g"]
    windows = WindowPreprocessor(tokenizer, max_length=8, stride=2, max_question_length=2)(
        (["a", "a b c d"], contexts)
    )
    found = [
        contexts[row].encode()[start:end].decode()
        for row, starts, ends in zip(windows.rows, windows.starts, windows.ends, strict=True)
        for start, end in zip(starts.numpy(), ends.numpy(), strict=True)
        if start >= 0
    ]
    assert found == ["\u00e9", "b", *"cde", *"efg"]
    outside = windows.pieces.numpy() < 0
    assert (windows.starts.numpy()[outside] == -1).all()
    assert (windows.ends.numpy()[outside] == -1).all()


def test_questions_are_cut_to_their_length(tokenizer):
    preprocess = WindowPreprocessor(tokenizer, max_length=8, max_question_length=2)
    word_ids = preprocess((["a b c d"], ["x"])).features["input_word_ids"][0]
    names = [tokenizer.vocabulary[number] for number in word_ids.numpy()]
    assert names == ["[CLS]", "a", "b", "[SEP]", "x", "[SEP]", "[PAD]", "[PAD]"]


def test_windows_work_in_a_dataset_and_on_an_empty_batch(tokenizer):
    preprocess = WindowPreprocessor(tokenizer, max_length=8, max_question_length=2)
    dataset = tf.data.Dataset.from_tensor_slices((["a", "b"], ["c", "d"])).batch(2)
    (windows,) = dataset.map(lambda questions, contexts: preprocess((questions, contexts)))
    assert windows.rows.numpy().tolist() == [0, 1]
    none = tf.constant([], tf.string)
    assert preprocess((none, none)).features["input_mask"].shape == [0, 8]


@pytest.mark.parametrize(("questions", "contexts"), [(2, 1), (1, 2)])
def test_as_many_questions_as_contexts_are_needed(tokenizer, questions, contexts):
    strings = tf.TensorSpec([None], tf.string)
    cut = tf.function(
        lambda *texts: WindowPreprocessor(tokenizer, 24, 4, 8)(texts).rows,
        input_signature=[strings, strings],
    )
    with pytest.raises(tf.errors.InvalidArgumentError):
        cut(tf.constant(["a"] * questions), tf.constant(["b"] * contexts))


def test_settings_that_cannot_be_are_refused(tokenizer):
    with pytest.raises(UserError, match="stride must be at least 1, got 0"):
        WindowPreprocessor(tokenizer, stride=0)
    with pytest.raises(UserError, match="max_length is 60, too short for questions of 64"):
        WindowPreprocessor(tokenizer, max_length=60)


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
