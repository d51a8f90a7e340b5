"""The exported next sentence head gives the model's own probability."""

import numpy as np
import tensorflow as tf

from bert_tf.text import Preprocessor

FIRST = ["the cat sat .", "", "a dog", "fish " * 40]
SECOND = ["it ran .", "a dog", "", "bird " * 40]


def test_probabilities_are_the_models_own(models, loaded, tokenizer):
    answer = loaded("nsp").signatures["serving_default"]
    found = answer(text_a=tf.constant(FIRST), text_b=tf.constant(SECOND))
    inputs = Preprocessor(tokenizer, max_length=32)((FIRST, SECOND))
    logits = models("nsp")(inputs)
    # Class 0: the second text follows the first.
    np.testing.assert_allclose(found["is_next"], tf.nn.softmax(logits)[:, 0], atol=1e-6)
    assert 0 < np.ptp(found["is_next"]) < 1
    none = tf.constant([], tf.string)
    assert answer(text_a=none, text_b=none)["is_next"].shape == (0,)
