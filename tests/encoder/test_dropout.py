"""Dropout drops at its rate, keeps the mean, and is quiet outside training."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder.dropout import Dropout
from bert_tf.errors import UserError


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_share_of_zeros_is_the_rate_and_the_mean_stays(rate):
    kept = Dropout(rate, seed=1)(tf.ones([200, 501]), training=True).numpy()
    assert (kept == 0).mean() == pytest.approx(rate, abs=0.005)
    assert kept.mean() == pytest.approx(1.0, abs=0.01)
    assert set(np.unique(kept)) == {0.0, np.float32(kept.max())}


def test_every_call_draws_a_new_mask_and_a_seed_fixes_their_order():
    one, two = Dropout(0.5, seed=3), Dropout(0.5, seed=3)
    x = tf.ones([64])
    first, second = one(x, training=True), one(x, training=True)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, two(x, training=True))
    np.testing.assert_array_equal(second, two(x, training=True))


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_rates_that_cannot_be_are_refused(rate):
    with pytest.raises(UserError, match=r"must be in \[0, 1\)"):
        Dropout(rate)


def test_a_rate_next_to_one_still_keeps_something():
    assert float(tf.reduce_max(Dropout(0.999995)(tf.ones([2**20]), training=True))) == 2**16


def test_nothing_is_dropped_outside_training_or_at_rate_zero():
    x = tf.ones([100])
    np.testing.assert_array_equal(Dropout(0.5)(x), x)
    np.testing.assert_array_equal(Dropout(0.0)(x, training=True), x)


def test_it_comes_back_from_its_configuration():
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(Dropout(0.3, seed=5))
    )
    assert (again.rate, again.seed) == (0.3, 5)
