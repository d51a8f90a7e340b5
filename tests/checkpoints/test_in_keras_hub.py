"""KerasHub itself opens what is written, and computes the same.

Runs where it is installed; `make bench` installs it.
"""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import conversion
from bert_tf.text import Tokenizer
from tests.checkpoints import tiny_models as tiny

models = pytest.importorskip("keras_hub", reason="KerasHub is not installed").models

pytestmark = pytest.mark.slow

SIZES = {
    "Bert": {"hidden_act": "gelu_new", "masked_lm_head": "keras_hub"},
    "DistilBert": tiny.DISTILBERT | {"masked_lm_head": "keras_hub"},
}
CLASSES = {
    "encoder": "Backbone",
    "masked_lm": "MaskedLM",
    "filler": "MaskedLM",
    "classifier": "TextClassifier",
    "labeller": "TextClassifier",
    "regressor": "TextClassifier",
}


@pytest.mark.parametrize("family", SIZES)
@pytest.mark.parametrize("kind", CLASSES)
def test_keras_hub_computes_the_same_from_what_is_written(tmp_path, kind, family):
    model = tiny.make(kind, **SIZES[family])
    tokenizer = Tokenizer(tiny.PIECES)
    conversion.save(model, tmp_path / "out", "keras_hub", tokenizer)

    theirs = getattr(models, family + CLASSES[kind]).from_preset(str(tmp_path / "out"))
    ids = np.random.RandomState(1).randint(0, len(tiny.PIECES), (2, 7))
    mask, types = np.ones((2, 7), np.int32), (ids > 6).astype(np.int32)
    mask[1, 4:] = 0
    given = dict(zip(tiny.INPUTS, map(tf.constant, (ids, mask, types)), strict=True))
    inputs = {"token_ids": ids, "padding_mask": mask}
    if family == "Bert":
        inputs["segment_ids"] = types
    if CLASSES[kind] == "MaskedLM":
        positions = np.tile(np.arange(7, dtype=np.int32), (2, 1))
        given["masked_lm_positions"] = tf.constant(positions)
        inputs["mask_positions"] = positions
    expected, found = theirs(inputs), model(given)
    if kind == "encoder":
        expected = expected["sequence_output"] if family == "Bert" else expected
        found = found["sequence_output"]
    elif kind == "masked_lm":
        found = found["masked_lm"]
    elif kind == "labeller":
        found = tf.sigmoid(found)
    rows = mask[..., None] if np.ndim(found) == 3 else 1
    found = np.reshape(found, expected.shape)
    assert np.abs((found - np.asarray(expected)) * rows).max() < tiny.TOLERANCE
    read = getattr(models, f"{family}Tokenizer").from_preset(str(tmp_path / "out"))
    texts = ["ab Ab d.", "á b", "[MASK] a"]
    assert [list(np.asarray(read(text))) for text in texts] == tokenizer.tokenize(texts).to_list()
    if kind == "classifier":
        assert theirs.preprocessor.sequence_length == model.max_length
