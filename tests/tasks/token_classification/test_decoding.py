"""Labels of words come from the window with most context, and entities from labels."""

import numpy as np
import pytest
import tensorflow as tf
from seqeval.metrics.sequence_labeling import get_entities

from bert_tf import TokenClassifier
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder
from bert_tf.tasks.token_classification.decoding import EntityTypes, Tags, WordTagger, best_labels
from bert_tf.text import Tokenizer, WordPreprocessor, tokenize_words
from tests.text.vocabularies import LOWER

SCHEMES = {
    "IOB": ["O", "B-A", "I-A", "B-b-c", "I-b-c"],
    "BIOES": ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("A", "b-c"))],
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(LOWER)


@pytest.fixture(scope="module")
def model() -> TokenClassifier:
    config = EncoderConfig(
        vocab_size=len(LOWER),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    return TokenClassifier(Encoder(config), None, range(4))


def test_a_label_is_the_most_probable_one():
    labels, scores = best_labels(tf.constant([[[0.0, 2.0], [1.0, 1.0]]]))
    assert labels.numpy().tolist() == [[1, 0]]
    np.testing.assert_allclose(scores, [[1 / (1 + np.exp(-2)), 0.5]], atol=1e-6)


@pytest.mark.end_to_end
def test_words_are_judged_by_their_first_piece_where_it_has_most_context(model, tokenizer):
    texts = [["the", "unable", "cat", "a", "b", "c", "cafe", "'"] * 2, ["t"], []]
    words = tf.ragged.constant(texts)
    preprocess = WordPreprocessor(tokenizer, max_length=8, stride=3)
    tagger = WordTagger(model, preprocess)
    pieces = tokenize_words(words, tokenizer)
    logits = tf.function(tagger.logits)(pieces)
    windows = preprocess(words)
    seen = 0
    for row, here, of_window in zip(
        windows.rows, windows.words, model(windows.features).numpy(), strict=True
    ):
        for place in np.flatnonzero(here >= 0):
            of_word = logits[int(row)][int(here[place])]
            np.testing.assert_allclose(of_word, of_window[place], atol=1e-5)
            seen += 1
    assert seen == 17 and len(windows.rows) > 5
    assert logits.row_lengths().numpy().tolist() == [16, 1, 0]
    tags = tf.function(tagger)(pieces)
    expected = best_labels(logits.values)
    np.testing.assert_array_equal(tags.labels.values, expected.labels)
    np.testing.assert_allclose(tags.scores.values, expected.scores, atol=1e-6)
    np.testing.assert_array_equal(tags.scores.row_splits, logits.row_splits)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_entities_are_those_of_seqeval(scheme):
    names = SCHEMES[scheme]
    source = np.random.default_rng(0)
    texts = [source.integers(0, len(names), source.integers(0, 12)) for _ in range(300)]
    flat = np.concatenate(texts).astype(np.int32)
    labels = tf.RaggedTensor.from_row_lengths(flat, [len(text) for text in texts])
    scores = labels.with_values(source.random(len(flat), np.float32))
    # Word i has the bytes from 10 i to 10 i + 7.
    starts = tf.ragged.range(tf.constant([len(text) for text in texts], tf.int32)) * 10
    types = EntityTypes(names)
    found = tf.function(types.entities)(Tags(labels, scores), starts, starts + 7)
    assert types.names == ["A", "b-c"]
    columns = (each.to_list() for each in (*found, scores))
    for text, kinds, begins, ends, confidences, of_words in zip(texts, *columns, strict=True):
        expected = get_entities([names[label] for label in text])
        assert [types.names[i] for i in kinds] == [kind for kind, _, _ in expected]
        assert begins == [10 * first for _, first, _ in expected]
        assert ends == [10 * last + 7 for _, _, last in expected]
        means = [np.mean(of_words[first : last + 1]) for _, first, last in expected]
        np.testing.assert_allclose(confidences, means, atol=1e-6)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["o", "per", "loc"], [("per", 0, 1), ("loc", 1, 2), ("per", 3, 4)]),
        (["O", "B_per", "I_per"], [("per", 0, 2), ("per", 3, 4)]),
        (["O", "I-per", "I-loc"], [("per", 0, 1), ("loc", 1, 2), ("per", 3, 4)]),
        (["DET", "NOUN", "VERB"], [("NOUN", 0, 1), ("VERB", 1, 2), ("DET", 2, 3), ("NOUN", 3, 4)]),
    ],
)
def test_tags_in_other_forms_have_entities_too(names, expected):
    labels = tf.ragged.constant([[1, 2, 0, 1]])
    starts = tf.ragged.constant([[0, 1, 2, 3]])
    types = EntityTypes(names)
    found = types.entities(Tags(labels, tf.ones_like(labels, tf.float32)), starts, starts + 1)
    kinds, begins, ends, _ = (each.to_list()[0] for each in found)
    assert [*zip((types.names[kind] for kind in kinds), begins, ends, strict=True)] == expected
