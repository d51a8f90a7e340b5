"""Windows of tagged words hold each label once, at the first piece of its word."""

import numpy as np
import pytest

from bert_tf import Encoder, TokenClassifier, Tokenizer
from bert_tf.tasks.token_classification.tagged_sentences import TaggedWindows
from tests import tiny
from tests.text.vocabularies import LOWER


def windows_of(texts, tags, **settings) -> TaggedWindows:
    names = sorted({tag for of_text in tags for tag in of_text})
    encoder = Encoder(tiny.encoder_config(vocab_size=len(LOWER)))
    model = TokenClassifier(encoder, Tokenizer(LOWER), names, **settings)
    return model.examples(model.given(texts, tags))


def test_batches_hold_labels_at_first_pieces_and_nowhere_else():
    texts = [["the", "unable", "cat"], ["cat"]]
    windows = windows_of(texts, [["b", "c", "d"], ["e"]], max_length=16)
    np.testing.assert_array_equal(windows.lengths, [6, 3])
    inputs, labels = windows.take(np.array([1, 0]))
    np.testing.assert_array_equal(labels, [[-1, 3, -1, -1, -1, -1], [-1, 0, 1, -1, 2, -1]])
    pieces = [[LOWER[i] for i in row] for row in inputs["input_word_ids"]]
    assert pieces[1] == ["[CLS]", "the", "un", "##able", "cat", "[SEP]"]
    assert labels.dtype == np.int32


@pytest.mark.end_to_end
def test_every_word_of_long_texts_is_trained_exactly_once():
    # More texts than are cut at a time.
    texts = [["unable", "cat", "a"] * (1 + i % 7) for i in range(300)]
    numbers = iter(range(10_000))
    tags = [[f"t{next(numbers):04d}" for _ in text] for text in texts]
    windows = windows_of(texts, tags, max_length=8, stride=3)
    assert len(windows.lengths) > 300
    _, taken = windows.take(np.arange(len(windows.lengths)))
    assert sorted(taken[taken >= 0]) == list(range(sum(map(len, texts))))
