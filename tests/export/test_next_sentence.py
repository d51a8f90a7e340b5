"""The exported next sentence head gives the model's own probability."""

import numpy as np
import tensorflow as tf

from bert_tf.export.served_model import ServedModel
from bert_tf.export.service import traced
from bert_tf.text import Preprocessor

FIRST = ["the cat sat .", "", "a dog", "fish " * 40]
SECOND = ["it ran .", "a dog", "", "bird " * 40]


def signature_of(model):
    """What its export has as its signature."""
    return traced(model.signatures(ServedModel(model))["serving_default"])


def test_probabilities_are_the_models_own(models, tokenizer):
    answer = signature_of(models("nsp"))
    found = answer(text_a=tf.constant(FIRST), text_b=tf.constant(SECOND))
    inputs = Preprocessor(tokenizer, max_length=32)((FIRST, SECOND))
    logits = models("nsp")(inputs)
    # Class 0: the second text follows the first.
    np.testing.assert_allclose(found["is_next"], tf.nn.softmax(logits)[:, 0], atol=1e-6)
    assert 0 < np.ptp(found["is_next"]) < 1
    none = tf.constant([], tf.string)
    assert answer(text_a=none, text_b=none)["is_next"].shape == (0,)
