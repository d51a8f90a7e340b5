"""Span probabilities of the words of a context, over all its windows."""

import re

import numpy as np
import pytest

from bert_tf.tasks.question_answering.pictures import SpanShares, words_of
from bert_tf.templates import macros
from bert_tf.text import Tokenizer, WindowPreprocessor
from tests import tiny

CONTEXT = "the cats sat. on the mat"
WORDS = ["the", "cats", "sat", ".", "on", "the", "mat"]
# "cats" has two pieces.
WORD_OF_PIECE = [0, 1, 1, 2, 3, 4, 5, 6]


@pytest.fixture(scope="module")
def windows():
    """A context of eight pieces in windows of five, two apart."""
    tokenizer = tiny.tokenizer()
    return WindowPreprocessor(tokenizer, max_length=9, stride=2, max_question_length=1)(
        (["who"], [CONTEXT])
    )


def logits_of(windows, of_pieces, elsewhere):
    """Logits: `of_pieces` where a piece has most context, `elsewhere` in other windows."""
    pieces = windows.pieces.numpy()
    return np.where(windows.has_most_context, np.array(of_pieces)[pieces], elsewhere)


def test_a_words_share_is_that_of_its_pieces_where_they_have_most_context(windows):
    assert len(windows.rows) > 1
    random = np.random.RandomState(0)
    start, end = random.normal(size=(2, 8))
    logits = [logits_of(windows, each, 50.0) for each in (start, end)]
    found = SpanShares.of(windows, *logits, tiny.VOCABULARY)
    data = CONTEXT.encode()
    assert [data[a:b].decode() for a, b in zip(found.starts, found.ends, strict=True)] == WORDS
    for shares, values in ((found.start, start), (found.end, end)):
        softmax = np.exp(values) / np.exp(values).sum()
        np.testing.assert_allclose(shares, np.bincount(WORD_OF_PIECE, weights=softmax))


def test_an_empty_context_has_no_words():
    tokenizer = tiny.tokenizer()
    empty = WindowPreprocessor(tokenizer, 9, 2, 1)((["who"], [""]))
    zeros = np.zeros(empty.pieces.shape, np.float32)
    assert len(SpanShares.of(empty, zeros, zeros, tiny.VOCABULARY).start) == 0


def test_pieces_of_one_character_are_one_word():
    tokenizer = Tokenizer([*tiny.VOCABULARY, "1", "⁄", "2"])
    one = WindowPreprocessor(tokenizer, 12, 8, 1)((["who"], ["½ cat"]))
    zeros = np.zeros(one.pieces.shape, np.float32)
    found = SpanShares.of(one, zeros, zeros, tokenizer.vocabulary)
    assert found.ends[-1] == len("½ cat".encode())
    assert (found.starts[1:] >= found.ends[:-1]).all()


def test_the_picture_is_the_context_with_the_answer_marked():
    shares = SpanShares(
        np.array([0, 4]), np.array([3, 8]), np.array([0.9, 0.1]), np.array([0.002, 0.998])
    )
    words = words_of("a<b née\n".encode(), shares, (4, 8))
    picture = macros("bert_tf/tasks/question_answering/answer.html").context(*words)
    text = re.sub(r"<small>.*?</small>|<[^>]*>", "", picture)
    assert text == "a&lt;b née\n"
    assert picture.count('class="answer barred"') == 1
    assert 'title="start 90.00%, end 0.20%"' in picture
