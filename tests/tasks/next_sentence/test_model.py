"""A model of next sentences learns which texts follow each other."""

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.tasks import fitting
from tests.tasks import tiny_objects as tiny

FIRST = ["the cat sat", "a dog ran"] * 8
SECOND = ["on the mat ."] * 8 + ["under the log .", "flew over the tree ."] * 4
# What follows a cat is on the mat.
FOLLOWS = [True, False] * 4 + [False, True] * 4


@pytest.mark.end_to_end
def test_it_learns_what_follows():
    model = tiny.follower()
    model.fit((FIRST, SECOND), FOLLOWS, epochs=60, learning_rate=1e-2, seed=0, verbose=0)
    assert model.evaluate((FIRST, SECOND), FOLLOWS)["accuracy"] > 0.9
    found = model.predict((FIRST[:2], SECOND[:2]), verbose=0)
    assert found[0] > 0.5 > found[1]
    assert model.predict(text_a=FIRST[0], text_b=SECOND[0]) == pytest.approx(found[0], abs=1e-6)


@pytest.mark.slow
def test_numbers_and_datasets_are_booleans_too():
    model = tiny.follower()
    model.fit((FIRST, SECOND), [int(each) for each in FOLLOWS], verbose=0)
    rows = ((FIRST, SECOND), FOLLOWS)
    dataset = tf.data.Dataset.from_tensor_slices(rows).batch(4)
    _, classes = next(iter(fitting.encoded_dataset(model, dataset)))
    # Class 0 is the next sentence, as in pre-training.
    assert classes.numpy().tolist() == [0, 1, 0, 1]
    assert np.isfinite(model.fit(dataset, verbose=0).history["loss"]).all()


@pytest.mark.parametrize("label", ["yes", 2, 0.5])
def test_other_labels_are_refused(label):
    with pytest.raises(bert_tf.UserError, match="label 1 is .*; it must be True where the second"):
        tiny.follower().fit((FIRST[:2], SECOND[:2]), [True, label])


def test_one_text_is_refused():
    with pytest.raises(bert_tf.UserError, match="takes text_a and text_b, but one column was"):
        tiny.follower().predict(["the cat"])
