"""The exported next sentence head gives the model's own probability."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.export.next_sentence import NextSentenceService
from bert_tf.export.saving import save_kind
from bert_tf.export.served_model import ServedModel
from bert_tf.export.service import traced
from bert_tf.models import PreTrainer
from bert_tf.text import Preprocessor

FIRST = ["the cat sat .", "", "a dog", "fish " * 40]
SECOND = ["it ran .", "a dog", "", "bird " * 40]


def signature_of(model, tokenizer):
    """What its export has as its signature."""
    service = NextSentenceService(ServedModel(model), tokenizer)
    return traced(service.signatures()["serving_default"])


def test_probabilities_are_the_models_own(models, tokenizer):
    answer = signature_of(models("nsp"), tokenizer)
    found = answer(text_a=tf.constant(FIRST), text_b=tf.constant(SECOND))
    inputs = Preprocessor(tokenizer, max_length=32)((FIRST, SECOND))
    positions = {"masked_lm_positions": np.zeros([len(FIRST), 1], np.int32)}
    logits = models("nsp")(inputs | positions)["next_sentence"]
    # Class 0: the second text follows the first.
    np.testing.assert_allclose(found["is_next"], tf.nn.softmax(logits)[:, 0], atol=1e-6)
    assert 0 < np.ptp(found["is_next"]) < 1
    none = tf.constant([], tf.string)
    assert answer(text_a=none, text_b=none)["is_next"].shape == (0,)


def test_a_model_without_the_head_is_refused(models, tokenizer, tmp_path):
    without = PreTrainer(models("nsp").encoder, next_sentence=False)
    with pytest.raises(UserError, match="pre-trained without next sentences"):
        save_kind(without, tokenizer, tmp_path / "x", "nsp")
