"""The encoder as a Keras model: sizes, names, layouts, saving, precision."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import TextClassifier
from bert_tf.errors import UserError
from bert_tf.models import Encoder, EncoderConfig

SMALL = EncoderConfig(
    vocab_size=30,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=12,
)


def batch(rows: int = 3, length: int = 7) -> dict[str, tf.Tensor]:
    random = np.random.RandomState(0)
    lengths = np.linspace(1, length, rows).round().astype(int)
    return {
        "input_word_ids": tf.constant(random.randint(0, 30, (rows, length))),
        "input_mask": tf.constant((np.arange(length) < lengths[:, None]).astype(int)),
        "input_type_ids": tf.constant(random.randint(0, 2, (rows, length))),
    }


@pytest.mark.parametrize(
    ("preset", "parameters"),
    [
        ("bert-tiny-uncased", 4_385_920),
        ("bert-mini-uncased", 11_170_560),
        ("bert-base-uncased", 109_482_240),
        pytest.param("bert-large-uncased", 335_141_888, marks=pytest.mark.slow),
    ],
)
def test_published_sizes_have_their_exact_number_of_parameters(preset, parameters):
    assert Encoder(EncoderConfig.preset(preset)).count_params() == parameters


def test_both_layouts_give_the_same_outputs_and_gradients():
    unpadded, padded = Encoder(SMALL), Encoder(SMALL, layout="padded")
    padded.set_weights(unpadded.get_weights())
    results = []
    for encoder in (unpadded, padded):
        with tf.GradientTape() as tape:
            outputs = encoder(batch())
            loss = tf.reduce_sum(outputs["sequence_output"][..., :3] ** 2)
            loss += tf.reduce_sum(outputs["pooled_output"][..., 0])
        weights = [weight.value for weight in encoder.weights]
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]
        results.append([outputs["sequence_output"], outputs["pooled_output"], *gradients])
    for one, other in zip(*results, strict=True):
        scale = max(1.0, np.abs(other).max())
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-6 * scale)


@pytest.mark.parametrize(
    ("direction", "seen"), [("left_to_right", slice(0, 3)), ("right_to_left", slice(3, None))]
)
def test_a_one_way_encoder_looks_only_that_way(direction, seen):
    encoder = Encoder(EncoderConfig(**SMALL.to_dict() | {"attention": direction}))
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
    return Encoder(EncoderConfig(**sizes), layout)


@pytest.mark.parametrize("bilstm", [False, True])
@pytest.mark.parametrize("attention", WAYS)
def test_the_pooled_output_has_read_every_token(attention, bilstm):
    length = 5
    # The first row as it is; in each other one token is another. Two are padding.
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
def test_some_tokens_are_what_they_are_among_all(attention, bilstm, layout):
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


@pytest.mark.parametrize("attention", WAYS)
def test_the_pooled_output_alone_is_the_same(attention):
    encoder = one_way_and_more(attention, bilstm=False)
    expected = encoder(batch())["pooled_output"]
    np.testing.assert_allclose(encoder.pooled(batch()), expected, rtol=0, atol=1e-5)


def test_the_last_block_computes_only_what_is_asked_for():
    encoder = Encoder(SMALL)
    rows = []
    for block in encoder.blocks:
        usual = block.intermediate.call
        block.intermediate.call = lambda tokens, usual=usual, **options: (
            rows.append(len(tokens)) or usual(tokens, **options)
        )
    encoder.pooled(batch())
    assert rows == [1 + 4 + 7, 3]


def test_a_batch_without_rows_has_no_pooled_outputs():
    empty = {name: value[:0] for name, value in batch().items()}
    assert Encoder(SMALL).pooled(empty).shape == (0, 8)


def test_side_by_side_is_both_ways_end_to_end():
    both = one_way_and_more("side_by_side", bilstm=False)
    left = Encoder(dataclasses.replace(both.config, attention="left_to_right"), with_pooler=False)
    left.set_weights(both.get_weights()[: len(left.weights)])
    halves = [left(batch()), both.right_to_left(batch())]
    joined = tf.concat([each["sequence_output"] for each in halves], axis=-1)
    np.testing.assert_allclose(both(batch())["sequence_output"], joined, atol=1e-5)
    for layer, outputs in enumerate(both(batch())["encoder_outputs"]):
        joined = tf.concat([each["encoder_outputs"][layer] for each in halves], axis=-1)
        np.testing.assert_allclose(outputs, joined, atol=1e-5)


@pytest.mark.slow
def test_a_classifier_learns_by_plain_fit():
    keras.utils.set_random_seed(0)
    model = TextClassifier(Encoder(SMALL), None, range(2))
    model.compile(
        keras.optimizers.Adam(5e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    inputs = batch(rows=16)
    labels = tf.constant([0, 1] * 8)
    losses = model.fit(inputs, labels, batch_size=16, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0]


def test_mixed_precision_computes_in_bfloat16_and_keeps_float32_weights():
    exact, mixed = Encoder(SMALL), Encoder(SMALL, dtype="mixed_bfloat16")
    mixed.set_weights(exact.get_weights())
    outputs = mixed(batch())["sequence_output"]
    assert outputs.dtype == tf.bfloat16
    assert {weight.dtype for weight in mixed.weights} == {"float32"}
    expected = exact(batch())["sequence_output"]
    np.testing.assert_allclose(tf.cast(outputs, tf.float32), expected, atol=0.1)


def test_a_sequence_longer_than_the_positions_is_refused():
    with pytest.raises(UserError, match="13 tokens do not fit 12 positions"):
        Encoder(SMALL)(batch(length=13))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 10, "num_attention_heads": 3}, "hidden_size 10 is not a multiple"),
        ({"hidden_act": "gelu_now"}, "did you mean gelu_new"),
        ({"attention": "left"}, "left_to_right"),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be at least 1"),
        ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob must be in"),
    ],
)
def test_sizes_that_do_not_fit_together_are_named(changes, message):
    with pytest.raises(UserError, match=message):
        EncoderConfig(**changes)


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(UserError, match="did you mean bert-base-uncased"):
        EncoderConfig.preset("bert-base-uncase")
