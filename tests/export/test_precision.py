"""A model is copied where it is to be served in another precision than its own."""

import numpy as np
import pytest

from bert_tf import QuestionAnswerer, TextClassifier
from bert_tf.encoder.encoder import INPUTS, Encoder
from bert_tf.errors import UserError
from bert_tf.export.precision import in_precision
from bert_tf.export.saving import save_task
from bert_tf.export.served_model import Form
from tests import tiny

IDS = {name: np.ones([2, 5], np.int32) for name in INPUTS}


@pytest.mark.bfloat16
def test_a_model_is_served_in_the_precision_asked_for(models, tokenizer):
    """Whatever it was trained in; by default it stays in that."""
    model = models("classification")
    encoder = Encoder(model.encoder.config, dtype="mixed_bfloat16")
    trained = TextClassifier(encoder, tokenizer, model.labels)
    trained.set_weights(model.get_weights())
    assert in_precision(trained, None) is trained
    assert in_precision(trained, "bfloat16") is trained
    asked = in_precision(trained, "float32")
    np.testing.assert_array_equal(asked(IDS), model(IDS))
    assert not np.allclose(trained(IDS), model(IDS), atol=1e-6)


def test_a_model_without_a_pooler_is_copied_without_one():
    model = QuestionAnswerer(Encoder(tiny.encoder_config(), with_pooler=False), None)
    copy = in_precision(model, "bfloat16")
    assert copy.encoder.pooler is None and copy.compute_dtype == "bfloat16"
    for ours, theirs in zip(copy.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_cannot_be_copied_is_told_in_one_line(models, tmp_path):
    with pytest.raises(UserError, match="unknown precision 'float16'; choose float32 or bfloat16"):
        save_task(models("mlm"), tmp_path / "x", Form("float16"))
    assert not list(tmp_path.iterdir())
