"""Exports answer in a session of TensorFlow 1, which TensorFlow Serving and its C library have."""

import numpy as np
import pytest
import tensorflow as tf

from tests.export.conftest import FAMILIES
from tests.export.requests import assert_same, in_session, request

# In this one a model of windows is asked by a service that works on texts in groups.
NESTED = [("mlm", True)]
OTHERS = [
    (family, freeze)
    for family in FAMILIES
    for freeze in (False, True)
    if (family, freeze) not in NESTED and family != "hub"
]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "freeze"), [*NESTED, *OTHERS])
def test_a_session_gives_the_same_answers(exported, loaded, family, freeze):
    settings = {"freeze": True} if freeze else {}
    ask = in_session(exported(family, **settings))
    for name, signature in loaded(family, **settings).signatures.items():
        # One batch is a single chunk, the other needs several.
        for times in (1, 150):
            inputs = request(signature, times)
            assert_same(ask(name, **inputs), signature(**inputs), tolerance=1e-4)


@pytest.mark.slow
def test_a_session_takes_texts_in_groups(exported, loaded):
    texts = tf.constant(["a cat [MASK] the mat" + " " * 3_000_000] * 3 + ["[MASK]"])
    answers = in_session(exported("mlm", freeze=True))("serving_default", text=texts)
    assert answers["tokens"].shape[0] == 4
    expected = loaded("mlm", freeze=True).signatures["serving_default"](text=texts)
    assert_same(answers, expected, tolerance=1e-4)
    np.testing.assert_array_equal(answers["tokens"][0], answers["tokens"][1])
