"""The encoder as a Keras model: sizes, names, layouts, saving, precision."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import TextClassifier
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from tests import tiny

SMALL = tiny.encoder_config(
    vocab_size=30, num_hidden_layers=2, initializer_range=0.02, max_position_embeddings=12
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
def test_published_sizes_have_their_exact_number_of_parameters(monkeypatch, preset, parameters):
    # Zeros are made faster than random numbers.
    zeros = lambda _, shape, dtype=None: tf.zeros(shape, dtype or tf.float32)  # noqa: E731
    monkeypatch.setattr(keras.initializers.TruncatedNormal, "__call__", zeros)
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


def test_rows_are_looked_up_without_a_copy_of_the_table():
    encoder = Encoder(SMALL)
    encoder(batch())
    table = encoder.embeddings.word_embeddings.value
    first, second = (np.from_dlpack(table.read_value()) for _ in range(2))
    # Once rows are gathered from a variable itself, TensorFlow copies it on every read.
    assert np.shares_memory(first, second)


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


@pytest.mark.bfloat16
def test_mixed_precision_computes_in_bfloat16_and_keeps_float32_weights():
    exact, mixed = Encoder(SMALL), Encoder(SMALL, dtype="mixed_bfloat16")
    mixed.set_weights(exact.get_weights())
    outputs = mixed(batch())["sequence_output"]
    assert outputs.dtype == tf.bfloat16
    assert {weight.dtype for weight in mixed.weights} == {"float32"}
    expected = exact(batch())["sequence_output"]
    np.testing.assert_allclose(tf.cast(outputs, tf.float32), expected, atol=0.1)


def test_a_sequence_longer_than_the_positions_is_refused():
    with pytest.raises(UserError, match="13 tokens do not fit into 12 positions"):
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
