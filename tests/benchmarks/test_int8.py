"""Products of 8-bit integers in place of `Linear`'s own."""

import os
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf

from benchmarks import int8
from bert_tf import TextClassifier
from bert_tf.encoder.encoder import Encoder
from bert_tf.encoder.linear import Linear
from tests import tiny
from tests.processors import processor_flags


def adds_in_32_bits() -> bool:
    """Whether oneDNN may use VNNI. Without it, sums of 16 bits may overflow in the kernels."""
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI").upper()
    is_allowed = any(name in limit for name in ("VNNI", "BF16", "AMX"))
    return is_allowed and not processor_flags().isdisjoint({"avx512_vnni", "avx_vnni"})


@pytest.mark.skipif(not adds_in_32_bits(), reason="oneDNN has no VNNI here")
def test_a_model_with_products_of_integers_answers_nearly_the_same():
    keras.utils.set_random_seed(0)
    config = tiny.encoder_config(hidden_size=64, initializer_range=0.1)
    model = TextClassifier(Encoder(config), None, range(2))
    ids = np.array([[2, 7, 9, 11, 3], [2, 8, 10, 3, 0]], np.int32)
    features = {
        "input_word_ids": ids,
        "input_mask": (ids > 0).astype(np.int32),
        "input_type_ids": np.zeros_like(ids),
    }
    exact = tf.function(lambda: model(features))().numpy()
    with mock.patch.object(Linear, "call", int8._int8_call(model)):
        try:
            rounded = tf.function(lambda: model(features))().numpy()
        except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError) as error:
            pytest.skip(f"this build has no products of integers: {error.message[:80]}")
    assert not np.array_equal(rounded, exact)
    np.testing.assert_allclose(rounded, exact, atol=0.1 * np.abs(exact).max())
