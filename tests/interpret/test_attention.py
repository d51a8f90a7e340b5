"""The maps are what the layers compute with, in every layout and direction."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.encoder import Encoder
from bert_tf.interpret.looks import attention_maps, shown_places
from tests import tiny

INPUTS = {
    "input_word_ids": tf.constant([[2, 7, 8, 9, 3]]),
    "input_mask": tf.ones([1, 5], tf.int32),
    "input_type_ids": tf.zeros([1, 5], tf.int32),
}


@pytest.mark.parametrize("layout", ["padded", "unpadded"])
def test_each_map_is_what_the_layer_computes_from_its_input(layout):
    keras.utils.set_random_seed(0)
    encoder = Encoder(tiny.encoder_config(num_hidden_layers=2), layout)
    found = attention_maps(encoder, INPUTS, np.arange(5))
    assert found.layers == ("1", "2")
    encoded = encoder.encode(INPUTS)
    bias = encoder.attention_bias(encoded.layout)
    entering = (encoded.embeddings, encoded.layers[0])
    for block, tokens, maps in zip(encoder.blocks, entering, found.probabilities, strict=True):
        _, intermediates = block.attention(tokens, layout=encoded.layout, bias=bias)
        expected = intermediates["attention_probabilities"]
        np.testing.assert_array_equal(maps, expected[0])


def test_two_ways_side_by_side_have_their_layers_one_after_the_other():
    encoder = encoder_for(tiny.encoder_config(num_hidden_layers=2, attention="side_by_side"))
    found = attention_maps(encoder, INPUTS, np.arange(5))
    assert found.layers == tuple(f"{i} {way}" for way in WAYS_SHOWN for i in (1, 2))
    assert not np.triu(found.probabilities[:2], 1).any()
    assert not np.tril(found.probabilities[2:], -1).any()


WAYS_SHOWN = ("left to right", "right to left")


def test_only_some_tokens_may_be_shown():
    encoder = Encoder(tiny.encoder_config())
    places = np.array([0, 3])
    everything = attention_maps(encoder, INPUTS, np.arange(5)).probabilities
    some = attention_maps(encoder, INPUTS, places).probabilities
    np.testing.assert_array_equal(some, everything[:, :, places][..., places])


@pytest.mark.parametrize(
    ("type_ids", "focus", "expected"),
    [
        ("000000", 0, [0, 1, 2, 3, 4, 5]),
        ("00000000", 0, [0, 1, 2, 3, 4, 5]),
        ("00000000", 7, [2, 3, 4, 5, 6, 7]),
        ("00011111111", 7, [0, 1, 2, 6, 7, 8]),
        ("00011111111", 0, [0, 1, 2, 3, 4, 5]),
        ("00000000111", 9, [0, 1, 2, 8, 9, 10]),
        ("0000000011", 9, [0, 1, 2, 7, 8, 9]),
    ],
)
def test_of_long_inputs_the_part_of_interest_is_shown(type_ids, focus, expected):
    shown = shown_places(np.array([int(each) for each in type_ids]), focus, most=6)
    assert shown.tolist() == expected
