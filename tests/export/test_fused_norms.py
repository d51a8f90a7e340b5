"""The form of the encoder whose LayerNorms are one operation gives the same outputs."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.fused_norms import can_fuse_norms, fuse_norms
from bert_tf.export.precision import copied
from tests import tiny


def inputs():
    random = np.random.RandomState(0)
    mask = np.ones((3, 9), np.int32)
    mask[1, 5:] = 0
    arrays = {
        "input_word_ids": random.randint(0, len(tiny.VOCABULARY), mask.shape),
        "input_mask": mask,
        "input_type_ids": random.randint(0, 2, mask.shape),
    }
    return {name: tf.constant(array, tf.int32) for name, array in arrays.items()}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"layer_norm_eps": 1e-3},
        {"attention": "left_to_right", "layer_norm_eps": 1e-5},
        {"attention": "side_by_side"},
        {"model_type": "electra", "embedding_size": 4},
    ],
)
def test_every_output_stays_the_same(fields):
    config = tiny.encoder_config(**fields)
    encoder = encoder_for(config)
    random = np.random.RandomState(1)
    for weight in encoder.weights:
        weight.assign(weight + 0.1 * random.normal(size=weight.shape))
    fused = copied(encoder, encoder.dtype_policy)
    fuse_norms(fused)

    expected, found = encoder(inputs()), fused(inputs())
    assert any(
        block.output_layer_norm.fused for tower in fused.towers().values() for block in tower.blocks
    )
    for one, other in zip(tf.nest.flatten(expected), tf.nest.flatten(found), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)
    places = tf.constant([[0, 3]] * 3)
    one, other = (each.encode_at(inputs(), places) for each in (encoder, fused))
    np.testing.assert_allclose(one, other, atol=2e-5)
    one, other = (each.encode(inputs()).embeddings for each in (encoder, fused))
    np.testing.assert_allclose(one, other, atol=2e-5)


def test_the_weights_of_bert_keep_their_digits():
    encoder = Encoder(tiny.encoder_config())
    fused = copied(encoder, encoder.dtype_policy)
    fuse_norms(fused)

    for one, other in zip(encoder.weights, fused.weights, strict=True):
        digits = (np.frexp(weight.numpy())[0] for weight in (one, other))
        np.testing.assert_array_equal(*digits)


def test_float16_has_no_room_for_it():
    assert not can_fuse_norms(Encoder(tiny.encoder_config(), dtype="mixed_float16"))
    assert can_fuse_norms(Encoder(tiny.encoder_config(), dtype="mixed_bfloat16"))
