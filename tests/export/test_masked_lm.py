"""The exported masked language model fills every [MASK], in texts of any length."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import MaskedLM
from bert_tf.data.corpora.masking import causal_lm_targets
from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.served_model import ServedModel
from bert_tf.export.service import traced
from tests import tiny

TEXTS = ["the [MASK] sat on the [MASK] .", "", "no gap", "[MASK]"]
# The first of them as the model reads it.
PIECES = "[CLS] the [MASK] sat on the [MASK] . [SEP]".split()


@pytest.fixture(scope="module")
def answer(loaded):
    signature = loaded("mlm").signatures["serving_default"]
    return lambda texts: signature(text=tf.constant(texts, tf.string))


def signature_of(model, tokenizer, **options):
    """The signature of an export with these options."""
    masked_lm = MaskedLM(model.encoder, tokenizer, **options)
    masked_lm.masked_lm = model.masked_lm
    return traced(masked_lm.with_network(ServedModel(masked_lm)).signatures()["serving_default"])


def pieces(tokenizer) -> np.ndarray:
    """int32 [1, seq_len]."""
    return np.array([[tokenizer.vocabulary.index(each) for each in PIECES]], np.int32)


def check_first(found, model, tokenizer, positions) -> None:
    """The fillings of the first text are those that the model itself predicts at `positions`."""
    top_k = model.top_k
    ids = pieces(tokenizer)
    logits = model(
        {
            "input_word_ids": ids,
            "input_mask": np.ones_like(ids),
            "input_type_ids": np.zeros_like(ids),
            "masked_lm_positions": np.array([positions]),
        }
    )[0, :, : tokenizer.vocab_size]
    best = np.argsort(-logits.numpy(), axis=1)[:, :top_k]
    probabilities = np.take_along_axis(tf.nn.softmax(logits).numpy(), best, axis=1)
    tokens = np.array(tokenizer.vocabulary)[best]
    assert found["tokens"].shape == (4, 2, top_k)
    np.testing.assert_array_equal(found["tokens"][0].numpy().astype(str), tokens)
    np.testing.assert_allclose(found["probabilities"][0], probabilities, rtol=1e-4)


@pytest.mark.end_to_end
def test_fillings_are_the_models_own(answer, models, tokenizer):
    check_first(answer(TEXTS), models("mlm"), tokenizer, [2, 6])


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["left_to_right", "right_to_left"])
def test_a_model_of_one_direction_fills_where_it_was_trained_to(tokenizer, attention):
    keras.utils.set_random_seed(7)
    config = tiny.encoder_config(16, attention=attention)
    model = MaskedLM(encoder_for(config), tokenizer)
    found = signature_of(model, tokenizer)(text=tf.constant(TEXTS))

    ids = pieces(tokenizer)
    trained = causal_lm_targets(ids, np.ones_like(ids), reversed=attention == "right_to_left")
    told_there = tf.equal(trained.ids, tokenizer.mask_id)
    positions = tf.boolean_mask(trained.positions, told_there).numpy().tolist()
    assert positions == {"left_to_right": [1, 5], "right_to_left": [3, 7]}[attention]
    check_first(found, model, tokenizer, positions)
    # The row of the last text has only [CLS] and [SEP] besides [MASK].
    assert (found["tokens"].numpy()[3, 0] != b"").all()


@pytest.mark.slow
def test_pieces_that_the_vocabulary_does_not_have_are_never_answers(tokenizer):
    """Some checkpoints round up the size of their table of embeddings."""
    config = tiny.encoder_config(16, vocab_size=tokenizer.vocab_size + 6)
    model = MaskedLM(Encoder(config), tokenizer)
    likely = np.zeros(config.vocab_size)
    likely[tokenizer.vocab_size :] = 100
    model.masked_lm.output_bias.assign(likely)
    found = signature_of(model, tokenizer)(text=tf.constant(TEXTS))
    check_first(found, model, tokenizer, [2, 6])


def test_texts_with_fewer_masks_are_padded(answer):
    found = answer(TEXTS)
    is_filled = found["tokens"].numpy() != b""
    assert is_filled.all(axis=2).tolist() == [[True] * 2, [False] * 2, [False] * 2, [True, False]]
    np.testing.assert_array_equal(found["probabilities"].numpy() > 0, is_filled)
    alone = answer(TEXTS[3:])
    np.testing.assert_array_equal(alone["tokens"][0, 0], found["tokens"][3, 0])


def test_a_mask_is_filled_wherever_it_stands_in_a_long_text(answer):
    words = ["cat dog"] * 300
    for place in (0, 17, 150, 299):
        words[place] = "the [MASK] sat"
    found = answer([" ".join(words)])
    assert found["tokens"].shape == (1, 4, 3)
    assert (found["tokens"].numpy() != b"").all()
    assert 0 < found["probabilities"].numpy().sum(axis=2).max() <= 1 + 1e-5


def test_a_batch_without_a_mask_or_without_a_text_has_an_empty_answer(answer):
    assert answer(["cat", ""])["tokens"].shape == (2, 0, 3)
    assert answer([])["tokens"].shape == (0, 0, 3)


def test_groups_of_long_texts_are_answered_as_each_alone(answer):
    texts = ["cat " * 1_200_000 + "[MASK]", "a [MASK]", "dog " * 1_100_000 + "[MASK] [MASK]", ""]
    together = answer(texts)
    assert together["tokens"].shape == (4, 2, 3)
    np.testing.assert_array_equal(together["tokens"][1, :1], answer(texts[1:2])["tokens"][0])
    np.testing.assert_array_equal(together["tokens"][3], [[b""] * 3] * 2)


@pytest.mark.slow
def test_the_special_token_is_found_in_cased_text(models):
    cased = tiny.tokenizer(False)
    found = signature_of(models("mlm"), cased)(text=tf.constant(["The[MASK]."]))
    assert found["tokens"].shape == (1, 1, 5)
