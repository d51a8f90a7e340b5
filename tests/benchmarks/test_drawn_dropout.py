"""Both sides of `same_updates` drop the same elements."""

from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf

from benchmarks.quality import drawn_dropout
from benchmarks.quality.drawn_dropout import DrawnDropout, draw_in_ours
from bert_tf import QuestionAnswerer, TextClassifier, TokenClassifier
from bert_tf.checkpoints import reading
from bert_tf.encoder.encoder import Encoder
from bert_tf.encoder.layers import Dropout
from bert_tf.tasks import from_checkpoint
from tests import tiny

RATE = 0.4
# Two rows, of four and of two tokens.
INPUTS = {
    "input_word_ids": tf.constant([[2, 8, 9, 3], [2, 3, 0, 0]]),
    "input_mask": tf.constant([[1, 1, 1, 1], [1, 1, 0, 0]]),
    "input_type_ids": tf.zeros([2, 4], tf.int32),
}


def classifier(encoder):
    return TextClassifier(encoder, None, range(2))


def model_of(kind):
    keras.utils.set_random_seed(0)
    rates = {"hidden_dropout_prob": RATE, "attention_probs_dropout_prob": RATE}
    return kind(Encoder(tiny.encoder_config(**rates)))


@pytest.mark.parametrize(
    "kind",
    [
        classifier,
        lambda encoder: TokenClassifier(encoder, None, range(3)),
        lambda encoder: QuestionAnswerer(encoder, None),
    ],
)
def test_every_dropout_of_a_model_is_known(kind):
    model = model_of(kind)
    every = {id(layer) for layer in model._flatten_layers() if isinstance(layer, Dropout)}
    assert {id(layer) for layer in drawn_dropout._dropouts(model)} == every


def test_draws_are_the_same_in_another_model_and_differ_between_updates():
    ours, other = (model_of(classifier) for _ in range(2))
    for model in (ours, other):
        draw_in_ours(model)
    first, second = (ours(INPUTS, training=True).numpy() for _ in range(2))
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_array_equal(other(INPUTS, training=True), first)


def _sorted(outputs):
    """The outputs in the order of their names, as TensorFlow flattens a dict."""
    return [outputs[name] for name in sorted(outputs)]


@pytest.mark.parametrize(
    "name",
    ["BertForSequenceClassification", "BertForTokenClassification", "BertForQuestionAnswering"],
)
def test_with_the_same_draws_a_model_of_the_peer_gives_the_same(name, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    transformers.set_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    rates = {"hidden_dropout_prob": RATE, "attention_probs_dropout_prob": RATE}
    config = transformers.BertConfig(
        vocab_size=len(tiny.VOCABULARY), intermediate_size=8, initializer_range=1.0, **sizes | rates
    )
    peer = getattr(transformers, name)._from_config(config, attn_implementation="eager")
    peer.save_pretrained(tmp_path)
    checkpoint = reading.find(tmp_path)
    model = from_checkpoint.build(checkpoint, checkpoint.folder)
    checkpoint.fill(model)
    draw_in_ours(model)
    dropout = DrawnDropout(model)
    # Rows of 17 and 16 tokens. Our model computes rows of 18, and 34 tokens in all.
    mask = np.arange(17) < [[17], [16]]
    ids = np.random.default_rng(0).integers(5, len(tiny.VOCABULARY), mask.shape) * mask
    arrays = {"input_word_ids": ids, "input_mask": mask * 1, "input_type_ids": ids * 0}
    inputs = {key: torch.tensor(value) for key, value in arrays.items()}
    dropout.begin(arrays["input_mask"])

    peer.train()
    for _ in range(2):
        with mock.patch("torch.nn.functional.dropout", dropout):
            theirs = peer(inputs["input_word_ids"], inputs["input_mask"], inputs["input_type_ids"])
        ours = model({key: tf.constant(value) for key, value in arrays.items()}, training=True)
        for our, their in zip(tf.nest.flatten(ours), _sorted(theirs), strict=True):
            real = mask if our.shape[1] == mask.shape[1] else slice(None)
            found, expected = our.numpy()[real], their.detach().numpy()[real]
            np.testing.assert_allclose(found, expected, rtol=0, atol=5e-4)
