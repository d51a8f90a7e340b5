"""The encoders of the ablations: what each token sees, pooling, padding, layouts."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder.ablations import OneWayEncoder, SideBySideEncoder, encoder_for
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from tests.encoder.test_encoder import SMALL, batch


@pytest.mark.parametrize(
    ("direction", "seen"), [("left_to_right", slice(0, 3)), ("right_to_left", slice(3, None))]
)
def test_a_one_way_encoder_looks_only_that_way(direction, seen):
    encoder = encoder_for(EncoderConfig(**SMALL.to_dict() | {"attention": direction}))
    inputs = batch(rows=1)
    inputs["input_mask"] = tf.ones_like(inputs["input_mask"])
    before = encoder(inputs)["sequence_output"].numpy()
    ids = inputs["input_word_ids"].numpy()
    place = 3 if direction == "left_to_right" else 2
    ids[0, place] = (ids[0, place] + 1) % 30
    after = encoder(inputs | {"input_word_ids": tf.constant(ids)})["sequence_output"].numpy()
    np.testing.assert_array_equal(before[0, seen], after[0, seen])
    assert not np.allclose(before[0, place], after[0, place])


WAYS = ("bidirectional", "left_to_right", "right_to_left", "side_by_side")


def one_way_and_more(attention: str, bilstm: bool, layout: str = "unpadded") -> Encoder:
    sizes = SMALL.to_dict() | {"attention": attention, "bilstm": bilstm, "initializer_range": 0.5}
    return encoder_for(EncoderConfig(**sizes), layout)


@pytest.mark.parametrize("bilstm", [False, True])
@pytest.mark.parametrize("attention", WAYS)
def test_the_pooled_output_has_read_every_token(attention, bilstm):
    length = 5
    # Each row differs from the first one in one token. The last two places are padding.
    ids = np.tile(np.arange(1, 8), (1 + length, 1))
    ids[1 + np.arange(length), np.arange(length)] += 10
    pooled = one_way_and_more(attention, bilstm)(
        {
            "input_word_ids": tf.constant(ids),
            "input_mask": tf.constant(np.tile(np.arange(7) < length, (1 + length, 1)).astype(int)),
            "input_type_ids": tf.zeros_like(ids),
        }
    )["pooled_output"].numpy()
    assert pooled.shape[1] == (16 if attention == "side_by_side" else 8)
    assert (np.abs(pooled[1:] - pooled[0]).max(axis=1) > 1e-4).all()


@pytest.mark.parametrize("bilstm", [False, True])
@pytest.mark.parametrize("attention", WAYS)
def test_padding_changes_nothing_in_either_layout(attention, bilstm):
    unpadded = one_way_and_more(attention, bilstm)
    padded = one_way_and_more(attention, bilstm, "padded")
    padded.set_weights(unpadded.get_weights())
    expected = unpadded(batch())
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(padded(batch())[name], expected[name], rtol=0, atol=1e-5)
    np.testing.assert_allclose(unpadded.pooled(batch()), expected["pooled_output"], atol=1e-5)
    middle = {name: value[1:2, :4] for name, value in batch().items()}
    alone = unpadded(middle)
    np.testing.assert_allclose(alone["pooled_output"][0], expected["pooled_output"][1], atol=1e-5)
    np.testing.assert_allclose(
        alone["sequence_output"][0], expected["sequence_output"][1, :4], atol=1e-5
    )


PLACES = tf.constant([[0, 3], [2, 0], [6, 6]])  # the first row has a single token


@pytest.mark.parametrize("layout", ["unpadded", "padded"])
@pytest.mark.parametrize("bilstm", [False, True])
@pytest.mark.parametrize("attention", WAYS)
def test_encoding_some_tokens_gives_the_same_as_selecting_them_from_all(attention, bilstm, layout):
    encoder = one_way_and_more(attention, bilstm, layout)
    weights = [weight.value for weight in encoder.trainable_weights if "pooler" not in weight.path]
    factors = tf.random.stateless_normal([6, encoder.config.output_size], [1, 2])
    results = []
    for some in (
        lambda: encoder.encode_at(batch(), PLACES),
        lambda: encoder.encode(batch()).select(PLACES),
    ):
        with tf.GradientTape() as tape:
            tokens = some()
            loss = tf.reduce_sum(tokens * factors)
        gradients = [tf.convert_to_tensor(each) for each in tape.gradient(loss, weights)]
        results.append([tokens, *gradients])
    for found, expected in zip(*results, strict=True):
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * scale)
    np.testing.assert_array_equal(results[0][0][1], 0)  # place 3 of the first row is padding


def test_side_by_side_is_both_ways_end_to_end():
    both = one_way_and_more("side_by_side", bilstm=False)
    halves = [tower(batch()) for tower in both.towers().values()]
    joined = tf.concat([each["sequence_output"] for each in halves], axis=-1)
    np.testing.assert_allclose(both(batch())["sequence_output"], joined, atol=1e-5)
    for layer, outputs in enumerate(both(batch())["encoder_outputs"]):
        joined = tf.concat([each["encoder_outputs"][layer] for each in halves], axis=-1)
        np.testing.assert_allclose(outputs, joined, atol=1e-5)


@pytest.mark.parametrize("make", [Encoder, OneWayEncoder, SideBySideEncoder])
def test_a_class_refuses_the_configuration_of_another(make):
    with pytest.raises(UserError, match="encoder_for"):
        make(EncoderConfig(**SMALL.to_dict() | {"bilstm": True}))
