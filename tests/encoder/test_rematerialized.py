"""Blocks whose intermediates are computed again have the same gradients, dropout included."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import Encoder
from bert_tf.compat import layers_below
from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.layers import Dropout
from tests import tiny

RATES = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.3}
SIZES = tiny.encoder_config(16, num_hidden_layers=2, initializer_range=0.3, **RATES)
IDS = tf.constant([[2, 5, 6, 3], [2, 7, 3, 0]])
INPUTS = {"input_word_ids": IDS, "input_mask": tf.sign(IDS), "input_type_ids": IDS * 0}


def seeds(encoder):
    """The states that decide the next draw of each dropout."""
    dropouts = [layer for layer in layers_below(encoder) if isinstance(layer, Dropout)]
    return [dropout.seed_generator.state for dropout in dropouts]


def gradients(encoder, compute, graph):
    """The loss and the gradients by all weights, from dropout's first draw on."""
    for state in seeds(encoder):
        state.assign([0, 1])
    weights = [weight.value for weight in encoder.trainable_weights]

    def derived():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.cast(compute(encoder), tf.float32) ** 3)
        found = tape.gradient(loss, weights)
        return loss, [tf.convert_to_tensor(each) for each in found if each is not None]

    return (tf.function(derived) if graph else derived)()


WAYS = {
    "pooled": lambda encoder: encoder.pooled(INPUTS, training=True),
    "tokens": lambda encoder: encoder.encode(INPUTS, training=True).layers[-1],
    "all layers": lambda encoder: tf.add_n(encoder.encode(INPUTS, training=True).layers),
}


@pytest.mark.parametrize(
    ("layout", "way", "graph"),
    [
        *itertools.product(("unpadded", "padded"), WAYS, [False]),
        ("unpadded", "pooled", True),
        ("unpadded", "all layers", True),
        ("padded", "pooled", True),
    ],
)
def test_gradients_are_the_same(layout, way, graph):
    encoder = encoder_for(SIZES, layout=layout)
    loss, expected = gradients(encoder, WAYS[way], graph)
    encoder.rematerialize = True
    again, found = gradients(encoder, WAYS[way], graph)
    # A sum of a few hundred cubes of about 1, in float32.
    np.testing.assert_allclose(again, loss, rtol=1e-5, atol=1e-3)
    assert len(found) == len(expected) > 28
    for one, other in zip(found, expected, strict=True):
        largest = float(tf.reduce_max(tf.abs(other)))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 + 1e-5 * largest)


class Shifted(Encoder):
    """An encoder that learns what it adds to the scores of attention."""

    shift = 0.0

    def attention_bias(self, layout, positions=None):
        return super().attention_bias(layout, positions) + self.shift


def test_an_attention_bias_that_is_learned_has_its_gradient():
    encoder, found = Shifted(SIZES), []
    for rematerialize in (False, True):
        encoder.rematerialize = rematerialize
        encoder.shift = tf.constant([[[[0.1, 0.2, -0.3, 0.4]]]])
        for state in seeds(encoder):
            state.assign([0, 1])
        with tf.GradientTape() as tape:
            tape.watch(encoder.shift)
            loss = tf.reduce_sum(WAYS["tokens"](encoder) ** 3)
        found.append(tape.gradient(loss, encoder.shift))
    assert np.abs(found[0]).max() > 1e-3
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


def test_each_dropout_draws_once(monkeypatch):
    draws = []
    draw = Dropout._words

    def counted(dropout, count):
        draws.append(dropout)
        return draw(dropout, count)

    monkeypatch.setattr(Dropout, "_words", counted)
    encoder = encoder_for(SIZES)
    encoder.rematerialize = True
    gradients(encoder, WAYS["tokens"], graph=False)
    # 3 dropouts in each of two blocks draw twice, from the same seeds; one before them draws once.
    assert len(draws) == 2 * 3 * 2 + 1
    assert {int(state.numpy()[1]) for state in seeds(encoder)} == {2}


def test_outside_training_nothing_changes():
    encoder = encoder_for(SIZES)
    expected = encoder(INPUTS)["sequence_output"]
    encoder.rematerialize = True
    np.testing.assert_array_equal(encoder(INPUTS)["sequence_output"], expected)
