"""Importances are integrated gradients: they add up, and are exact where that can be known."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import TextClassifier, TokenClassifier
from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.encoder import Encoder
from bert_tf.interpret.importance import blanked, importances, log_odds
from tests import tiny

MASK_ID, KEPT = tiny.VOCABULARY.index("[MASK]"), (2, 3)
INPUTS = {
    "input_word_ids": tf.constant([[2, 7, 8, 9, 10, 3]]),
    "input_mask": tf.ones([1, 6], tf.int32),
    "input_type_ids": tf.zeros([1, 6], tf.int32),
}
BLANK = blanked(INPUTS, MASK_ID, KEPT)

# One layer is enough for gradients to go through.
encoder_config = functools.partial(tiny.encoder_config, num_hidden_layers=1)


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)


def explained(encoder, score, **options):
    (found,) = importances(
        ["it"], encoder, INPUTS, BLANK, lambda rows: score(rows)[:, None], **options
    )
    return found


def test_only_pieces_are_blanked():
    assert BLANK["input_word_ids"].numpy().tolist() == [[2, *[MASK_ID] * 4, 3]]
    assert BLANK["input_mask"] is INPUTS["input_mask"]


@pytest.mark.parametrize("layout", ["padded", "unpadded"])
def test_of_a_linear_output_they_are_the_tokens_own_parts(layout):
    encoder = Encoder(encoder_config(), layout)
    weights = tf.random.normal([6, 8])

    def score(rows):
        vectors = tf.reshape(encoder.encode(rows).embeddings, [-1, 6, 8])
        return tf.reduce_sum(vectors * weights, axis=[1, 2])

    way = encoder.encode(INPUTS).embeddings - encoder.encode(BLANK).embeddings
    expected = tf.reduce_sum(way * weights, axis=-1)
    found = explained(encoder, score, points=3)
    np.testing.assert_allclose(found.values, expected, atol=1e-5)


def test_every_one_of_35_tokens_has_its_own_importance():
    # The encoder pads 35 tokens to 36, and pads the tokens of several rows further.
    encoder = Encoder(encoder_config(max_position_embeddings=64, initializer_range=0.2))
    model = TextClassifier(encoder, None, range(3))
    inputs = {
        "input_word_ids": tf.constant([[2, *[7, 8, 9] * 11, 3]]),
        "input_mask": tf.ones([1, 35], tf.int32),
        "input_type_ids": tf.zeros([1, 35], tf.int32),
    }
    blank = blanked(inputs, MASK_ID, KEPT)
    (found,) = importances(
        ["it"], encoder, inputs, blank, lambda rows: log_odds(model(rows), 1)[:, None]
    )
    assert len(found.values) == 35
    np.testing.assert_allclose(found.values.sum(), found.change, rtol=1e-3)


@pytest.mark.parametrize("attention", ["bidirectional", "side_by_side"])
def test_they_add_up_to_what_the_output_changes_by(attention):
    encoder = encoder_for(encoder_config(attention=attention, initializer_range=0.2))
    model = TextClassifier(encoder, None, range(3))
    found = explained(encoder, lambda rows: log_odds(model(rows), 1))
    expected = log_odds(model(INPUTS), 1) - log_odds(model(BLANK), 1)
    np.testing.assert_allclose(found.change, expected[0], rtol=1e-5)
    np.testing.assert_allclose(found.values.sum(), found.change, rtol=1e-3)
    assert np.abs(found.values[1:-1]).min() > 0
    assert found.values[[0, -1]].tolist() == [0, 0]


def test_what_cannot_be_seen_adds_nothing():
    encoder = encoder_for(encoder_config(attention="left_to_right"))
    model = TokenClassifier(encoder, None, range(3))
    found = explained(encoder, lambda rows: log_odds(model(rows)[:, 2], 0))
    assert found.values[3:].tolist() == [0, 0, 0]
    assert np.abs(found.values[1:3]).min() > 0


def test_several_outputs_at_once_are_what_they_are_one_by_one():
    encoder = Encoder(encoder_config())
    model = TokenClassifier(encoder, None, range(3))
    together = importances(["a", "b"], encoder, INPUTS, BLANK, lambda rows: model(rows)[:, 2, :2])
    assert [each.of for each in together] == ["a", "b"]
    for place, each in enumerate(together):
        alone = explained(encoder, lambda rows, place=place: model(rows)[:, 2, place])
        np.testing.assert_allclose(each.values, alone.values, atol=1e-5)
        assert each.change == alone.change


def test_importances_of_a_frozen_encoder_add_up_too():
    encoder = Encoder(encoder_config())
    model = TokenClassifier(encoder, None, range(3), features="embeddings", lstm_units=4)
    found = explained(encoder, lambda rows: log_odds(model(rows)[:, 2], 0))
    np.testing.assert_allclose(found.values.sum(), found.change, rtol=1e-3)
    assert found.change != 0


def test_the_model_is_as_before():
    encoder = Encoder(encoder_config())
    model = TextClassifier(encoder, None, range(2))
    before = model(INPUTS)
    explained(encoder, lambda rows: log_odds(model(rows), 0))
    np.testing.assert_array_equal(model(INPUTS), before)


def test_log_odds_are_those_of_the_probability():
    logits = tf.constant([[1.0, 2.0, -1.0], [0.0, 0.0, 0.0]])
    p = tf.nn.softmax(logits).numpy()[:, 1]
    np.testing.assert_allclose(log_odds(logits, 1), np.log(p / (1 - p)), rtol=1e-6)
