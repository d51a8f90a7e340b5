"""What docs/how_to/serving.md advises to set where nothing is trained changes no answer."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from bert_tf.dependencies import FIXED_WEIGHTS

# Asks an export for batches of several sizes.
_ASK = """
import pickle, sys
import tensorflow as tf, tensorflow_text
folder, answers = sys.argv[1:]
loaded = tf.saved_model.load(folder)
ask = loaded.signatures["serving_default"]
texts = ["cat dog", "the cat", "dog"]
found = [ask(text=tf.constant(texts[:n]))["probabilities"].numpy() for n in (1, 3, 1)]
with open(answers, "wb") as file:
    pickle.dump(found, file)
"""


@pytest.mark.slow
@pytest.mark.bfloat16
def test_answers_are_the_same(exported, tmp_path):
    folder = exported("classification", precision="bfloat16")
    told = {}
    for value in ("0", "1"):
        environment = os.environ | {"TF_ENABLE_ONEDNN_OPTS": "1", FIXED_WEIGHTS: value}
        answers = tmp_path / value
        subprocess.run(
            [sys.executable, "-c", _ASK, str(folder), str(answers)], check=True, env=environment
        )
        told[value] = pickle.loads(answers.read_bytes())
    plain, fixed = told.values()
    for one, other in zip(plain, fixed, strict=True):
        np.testing.assert_allclose(one, other, atol=0.01)
    np.testing.assert_array_equal(fixed[0], fixed[2])
