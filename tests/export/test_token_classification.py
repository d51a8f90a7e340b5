"""The exported tagger says of texts and of words what evaluation says, and never crashes."""

import itertools
import random

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import TokenClassifier
from bert_tf.config.reading import load_config
from bert_tf.data.columns import Columns
from bert_tf.encoder.encoder import Encoder
from bert_tf.tasks.token_classification.metrics import entity_metrics
from bert_tf.tasks.token_classification.run import TokenClassification
from tests import tiny, tiny_tags
from tests.export import odd_texts
from tests.export.requests import assert_same

TEXTS = ["the cat sat on the mat's log.", "", "dogs ran\N{SNOWMAN} é\0x U.S.", "a fish, " * 40]
OUTPUTS = {"words", "labels", "starts", "ends", "scores"}
ENTITY_OUTPUTS = {"entities", "types", "starts", "ends", "scores"}


@pytest.fixture
def model(models) -> TokenClassifier:
    return models("token_classification")


@pytest.fixture
def saved(exported):
    return exported("token_classification")


@pytest.fixture
def loaded(opened, saved):
    return opened(saved)


def check(texts, answers) -> None:
    """Offsets cut out the words and entities in order, and padding is right."""
    rows = {"text": [text.encode() for text in texts]}
    found = {name: value.numpy() for name, value in answers.items()}
    assert {len(value) for value in found.values()} == {len(texts)}
    odd_texts.check(rows, found, [label.encode() for label in tiny_tags.LABELS])


def test_words_and_labels_are_those_of_evaluation(loaded, model, tmp_path):
    path = tiny_tags.write_tagging(tmp_path)
    config = load_config(path, ["data.stride=8"])
    task = TokenClassification(config, tiny_tags.LABELS)
    source = random.Random(0)
    words, tags = [], []
    for length in (1, 60, 3, 9, 25, 14):
        known = [*tiny.WORDS, "cats", "s", "unheard-of"]
        words.append([source.choice(known) for _ in range(length)])
        tags.append(tuple(source.choice(tiny_tags.LABELS) for _ in range(length)))
    data = Columns(("words",), (words,), tags)
    logits = model.infer(data)
    metrics = task.score(model, logits, data)

    padded = tf.ragged.constant(words).to_tensor("")
    answers = loaded.signatures["words"](words=padded)
    by_text = loaded.signatures["serving_default"](text=tf.constant(list(map(" ".join, words))))

    assert set(answers) == set(by_text) == OUTPUTS
    assert_same(by_text, answers, tolerance=1e-6)
    np.testing.assert_array_equal(answers["words"], padded)
    predicted = [
        [label.decode() for label in row if label] for row in answers["labels"].numpy().tolist()
    ]
    again = entity_metrics(tags, predicted, ["animal", "place"])
    assert len(set(sum(predicted, []))) > 1 and 0 < again["f1"] < 1
    assert again == {name: metrics[name] for name in again}
    best = tf.reduce_max(tf.nn.softmax(logits), axis=1)
    scores = answers["scores"].numpy()
    np.testing.assert_allclose(scores[scores > 0], best, atol=1e-5)


def test_texts_are_cut_into_words_and_entities(loaded):
    answers = loaded.signatures["serving_default"](text=tf.constant(TEXTS))
    check(TEXTS, answers)
    words = answers["words"].numpy().tolist()
    assert words[0][:9] == b"the cat sat on the mat 's log .".split()
    assert words[2][:5] == [
        b"dogs",
        "ran\N{SNOWMAN}".encode(),
        "é\0x".encode(),
        b"U.S.",
        b"",
    ]
    again = loaded.signatures["words"](words=answers["words"])
    np.testing.assert_array_equal(again["labels"], answers["labels"])
    np.testing.assert_allclose(again["scores"], answers["scores"], atol=1e-6)


def test_entities_go_from_their_first_word_to_their_last(loaded):
    found = loaded.signatures["entities"](text=tf.constant(TEXTS))
    assert set(found) == ENTITY_OUTPUTS
    check(TEXTS, found)
    answers = loaded.signatures["serving_default"](text=tf.constant(TEXTS))
    for row, text in enumerate(TEXTS):
        expected, before = [], b"O"
        for label, start, end in zip(
            *(answers[name][row].numpy().tolist() for name in ("labels", "starts", "ends")),
            strict=True,
        ):
            prefix, _, kind = label.partition(b"-")
            if prefix == b"B" or prefix == b"I" and before[2:] != kind:
                expected.append([kind, start, end])
            elif prefix == b"I":
                expected[-1][2] = end
            before = label
        columns = (found[name][row].numpy().tolist() for name in ("types", "starts", "ends"))
        assert [list(each) for each in zip(*columns, strict=True) if each[0]] == expected
        assert expected or not text


@pytest.mark.parametrize(
    "texts", [[], [""], ["", " \n"], ["\0"], ["\u200b"], ["\u202e\u05d0\u05d1"]]
)
def test_there_may_be_no_words(loaded, texts):
    for name, outputs in (("serving_default", OUTPUTS), ("entities", ENTITY_OUTPUTS)):
        answers = loaded.signatures[name](text=tf.constant(texts, tf.string))
        assert set(answers) == outputs
        check(texts, answers)


@pytest.mark.parametrize("shape", [(0, 0), (0, 2), (2, 0), (1, 1), (2, 3)])
def test_there_may_be_nothing_but_padding(loaded, shape):
    answers = loaded.signatures["words"](words=tf.zeros(shape, tf.string))
    assert {each.shape for each in answers.values()} == {shape}
    np.testing.assert_array_equal(answers["ends"], np.full(shape, -1))


def test_a_missing_word_has_a_label_too(loaded):
    answers = loaded.signatures["words"](words=tf.constant([["cat", "", "sat", ""]]))
    labels = answers["labels"].numpy()[0].tolist()
    assert all(labels[:3]) and labels[3] == b""
    np.testing.assert_array_equal(answers["starts"], [[0, 4, 5, -1]])


@pytest.mark.slow
def test_labels_without_prefixes_have_entities_too(model, tokenizer, tmp_path):
    TokenClassifier(model.encoder, tokenizer, ["N", "V", "A", "X", "P"]).export(tmp_path / "pos")
    signatures = tf.saved_model.load(tmp_path / "pos").signatures
    words = signatures["serving_default"](text=tf.constant(TEXTS))
    labels = [[tag for tag in row if tag] for row in words["labels"].numpy().tolist()]
    runs = [[tag for tag, _ in itertools.groupby(row)] for row in labels]
    found = signatures["entities"](text=tf.constant(TEXTS))["types"].numpy().tolist()
    assert [[kind for kind in row if kind] for row in found] == runs


@pytest.mark.slow
def test_a_tagger_on_features_is_served_too(tokenizer, tmp_path):
    model = TokenClassifier(
        Encoder(tiny.encoder_config()),
        tokenizer,
        tiny_tags.LABELS,
        features="sum_all",
        lstm_units=4,
    )
    model.export(tmp_path / "features")
    loaded = tf.saved_model.load(tmp_path / "features")
    for texts in (TEXTS, [], [""]):
        answers = loaded.signatures["serving_default"](text=tf.constant(texts, tf.string))
        check(texts, answers)
