"""Windows of tagged words hold each label once, at the first piece of its word."""

import numpy as np
import pytest

from bert_tf.tasks.token_classification.tagged_windows import TaggedWindows
from bert_tf.text import Tokenizer, WordPreprocessor
from tests.text.vocabularies import LOWER


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(LOWER)


def test_batches_hold_labels_at_first_pieces_and_nowhere_else(tokenizer):
    texts = [["the", "unable", "cat"], ["cat"]]
    windows = TaggedWindows.cut(texts, [[1, 2, 3], [4]], WordPreprocessor(tokenizer, 16))
    np.testing.assert_array_equal(windows.lengths, [6, 3])
    inputs, labels = windows.take(np.array([1, 0]))
    np.testing.assert_array_equal(labels, [[-1, 4, -1, -1, -1, -1], [-1, 1, 2, -1, 3, -1]])
    pieces = [[tokenizer.vocabulary[i] for i in row] for row in inputs["input_word_ids"]]
    assert pieces[1] == ["[CLS]", "the", "un", "##able", "cat", "[SEP]"]
    assert labels.dtype == np.int32


def test_every_word_of_long_texts_is_trained_exactly_once(tokenizer):
    # More texts than are cut at a time.
    texts = [["unable", "cat", "a"] * (1 + i % 7) for i in range(300)]
    numbers = iter(range(10_000))
    labels = [[next(numbers) for _ in text] for text in texts]
    windows = TaggedWindows.cut(texts, labels, WordPreprocessor(tokenizer, 8, 3))
    assert len(windows.lengths) > 300
    _, taken = windows.take(np.arange(len(windows.lengths)))
    assert sorted(taken[taken >= 0]) == [label for of_text in labels for label in of_text]
