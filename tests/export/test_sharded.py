"""An encoder in shards gives the same outputs."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.fused_norms import fuse_norms
from bert_tf.export.precision import copied
from bert_tf.export.sharded import can_shard, sharded
from tests import tiny
from tests.export.test_fused_norms import inputs


def encoder_of(**fields) -> Encoder:
    """With biases that are not zero."""
    encoder = encoder_for(tiny.encoder_config(**fields))
    random = np.random.RandomState(1)
    for weight in encoder.weights:
        weight.assign(weight + 0.1 * random.normal(size=weight.shape))
    return encoder


@pytest.mark.parametrize(
    ("attention", "fused"),
    [("bidirectional", False), ("bidirectional", True), ("left_to_right", True)],
)
def test_every_output_stays_the_same(attention, fused):
    encoder = encoder_of(attention=attention, bilstm=attention == "left_to_right")
    whole = copied(encoder, encoder.dtype_policy)
    if fused:
        fuse_norms(whole)
    in_shards = sharded(whole)

    expected, found = encoder(inputs()), in_shards(inputs())
    for one, other in zip(tf.nest.flatten(expected), tf.nest.flatten(found), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)
    places = tf.constant([[0, 3]] * 3)
    one, other = (each.encode_at(inputs(), places) for each in (encoder, in_shards))
    np.testing.assert_allclose(one, other, atol=2e-5)


def test_shards_have_halves_of_the_weights():
    encoder = encoder_of(num_hidden_layers=2)
    in_shards = sharded(encoder)
    (first, _), (whole, _) = in_shards.blocks, encoder.blocks
    heads = encoder.config.num_attention_heads
    assert [each.num_heads for each in first.attentions] == [heads // 2] * 2
    one, other = (each.kernel.numpy() for each in first.intermediates)
    np.testing.assert_array_equal(np.concatenate([one, other], 1), whole.intermediate.kernel)
    # Each has its share of the one bias.
    extra = len(encoder.blocks) * 2 * encoder.config.hidden_size
    assert in_shards.count_params() == encoder.count_params() + extra


def test_an_odd_number_of_heads_cannot_be_shared():
    assert can_shard(tiny.encoder_config(num_attention_heads=4))
    assert not can_shard(tiny.encoder_config(num_attention_heads=1))
    assert not can_shard(tiny.encoder_config(attention="side_by_side"))
