"""Texts that come as words keep the way from each word to its pieces."""

import pytest
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.text import Tokenizer, WordPreprocessor, tokenize_words, without_padding
from tests.text.vocabularies import LOWER


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(LOWER)


def named(ids, tokenizer: Tokenizer) -> list[list[str]]:
    return [[tokenizer.vocabulary[number] for number in row] for row in ids]


def test_pieces_know_their_word_and_the_first_of_each(tokenizer):
    words = tf.ragged.constant([["The", "unable", "cat"], [], ["a-b"]])
    found = tokenize_words(words, tokenizer)
    assert named(found.ids.to_list(), tokenizer) == [
        ["the", "un", "##able", "cat"],
        [],
        ["a", "-", "b"],
    ]
    assert found.words.to_list() == [[0, 1, 1, 2], [], [0, 0, 0]]
    assert found.first_words.to_list() == [[0, 1, -1, 2], [], [0, -1, -1]]


def test_a_word_without_a_piece_is_unknown_so_that_it_has_a_place(tokenizer):
    found = tokenize_words(tf.ragged.constant([["a", "\u200b", "", "b"]]), tokenizer)
    assert named(found.ids.to_list(), tokenizer) == [["a", "[UNK]", "[UNK]", "b"]]
    assert found.first_words.to_list() == [[0, 1, 2, 3]]


def test_empty_strings_at_the_end_of_a_row_are_padding():
    words = tf.constant([["a", "", "b", ""], ["", "", "", ""]])
    assert without_padding(words).to_list() == [[b"a", b"", b"b"], []]
    assert without_padding(tf.zeros([2, 0], tf.string)).to_list() == [[], []]


def test_every_word_is_tagged_once_where_its_first_piece_has_most_context(tokenizer):
    words = [["the", "unable", "cat", "a", "b", "c", "cafe"], ["t"], []]
    padded = tf.ragged.constant(words).to_tensor("")
    for given in (tf.ragged.constant(words), padded):
        windows = WordPreprocessor(tokenizer, max_length=6, stride=2)(given)
        tagged = [
            (int(row), int(word))
            for row, here in zip(windows.rows, windows.words, strict=True)
            for word in here
            if word >= 0
        ]
        assert sorted(tagged) == [(0, word) for word in range(7)] + [(1, 0)]
        assert windows.rows.numpy().tolist() == [0, 0, 0, 1, 2]
        word_ids = windows.features["input_word_ids"].numpy().tolist()
        assert named(word_ids, tokenizer)[:2] == [
            ["[CLS]", "the", "un", "##able", "cat", "[SEP]"],
            ["[CLS]", "##able", "cat", "a", "b", "[SEP]"],
        ]
        assert windows.words[:2].numpy().tolist() == [
            [-1, 0, 1, -1, -1, -1],
            [-1, -1, 2, 3, -1, -1],
        ]


def test_windows_are_as_wide_as_the_longest(tokenizer):
    preprocess = WordPreprocessor(tokenizer, max_length=8)
    for words, width in (([["the"], ["a", "unable"]], 5), ([["a"] * 7], 8), ([[]], 2)):
        windows = preprocess(tf.ragged.constant(words, tf.string, ragged_rank=1))
        assert windows.words.shape[1] == width
        assert all(each.shape == windows.words.shape for each in windows.features.values())


def test_settings_that_cannot_be_are_refused(tokenizer):
    with pytest.raises(UserError, match="max_length is 2 and stride is 64"):
        WordPreprocessor(tokenizer, max_length=2, stride=64)
    with pytest.raises(UserError, match="max_length is 8 and stride is 0"):
        WordPreprocessor(tokenizer, max_length=8, stride=0)
