"""A masked language model is pre-trained further on texts, and fills gaps."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints import conversion
from bert_tf.models.pretrainer import PreTrainer
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal
from tests.tasks.tiny_objects import TEXTS


@pytest.fixture(scope="module")
def learned():
    """A model that learned from texts, and what its `fit` reported."""
    model = tiny.filler(top_k=2)
    history = model.fit(
        TEXTS,
        epochs=20,
        batch_size=8,
        learning_rate=1e-2,
        seed=0,
        verbose=0,
        validation_data=TEXTS,
        validation_freq=20,
    )
    return model, history.history


@pytest.mark.end_to_end
def test_it_learns_from_texts_alone(learned):
    model, history = learned
    after = model.evaluate(TEXTS, batch_size=5)
    # Before, no piece is likelier than another.
    assert after["loss"] < np.log(len(model.tokenizer.vocabulary)) - 0.5
    assert after["accuracy"] > 0.3
    assert after["perplexity"] == pytest.approx(np.exp(after["loss"]))
    # How many rows are computed at once changes nothing.
    for name, value in after.items():
        assert history[f"val_{name}"][-1] == pytest.approx(value, rel=1e-5)
    # Hardly anything but a cat or a dog stands there.
    (gap,) = model.predict("the [MASK] swam .")
    assert {each["token"] for each in gap} == {"cat", "dog"}
    assert sum(each["probability"] for each in gap) > 0.9


def test_every_epoch_hides_other_tokens_and_a_seed_decides_which():
    model = tiny.filler()
    examples = model.examples(model.given(TEXTS))
    first, again, other = (
        [
            batch[0]["input_word_ids"].numpy()
            for batch in model._batches(examples, 24, seed, 0, False).take(2)
        ]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first[0] != first[1]).any() and (first[0] != other[0]).any()


def test_long_texts_are_cut_into_windows_without_a_gap():
    model = tiny.filler(max_length=6)
    words = "the cat sat on the mat a dog ran under the log".split()
    examples = model.examples(model.given([" ".join(words), "fish"], sample_weight=[2.0, 1.0]))
    assert examples.lengths.tolist() == [6, 6, 6, 3]
    assert examples.weights.tolist() == [2.0, 2.0, 2.0, 1.0]
    ids = [each for each in examples.encoded.word_ids if each not in (2, 3)]
    vocabulary = model.tokenizer.vocabulary
    assert [vocabulary[each] for each in ids] == [*words, "fish"]


@pytest.mark.parametrize("attention", ["left_to_right", "right_to_left"])
def test_a_model_of_one_direction_predicts_every_token(attention):
    model = bert_tf.MaskedLM(tiny.encoder(attention=attention), tiny.tokenizer())
    model.compile("sgd", run_eagerly=True)
    rows = model.examples(model.given(["the cat sat"]))
    inputs, targets = model._hidden(
        {name: tf.constant(each) for name, each in rows.take(np.array([0]))[0].items()}, [0, 0]
    )
    assert tf.reduce_sum(targets["masked_lm_weights"]) == rows.lengths[0] - 1
    assert np.isfinite(model.fit(TEXTS, verbose=0).history["loss"]).all()


@pytest.mark.slow
def test_weights_and_datasets_work_as_in_keras():
    model = tiny.filler()
    model.fit(TEXTS, sample_weight=np.ones(len(TEXTS)), verbose=0)
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(8)
    keras.utils.set_random_seed(1)
    assert np.isfinite(model.fit(dataset, epochs=2, verbose=0).history["loss"]).all()
    gaps = tf.data.Dataset.from_tensor_slices(["the [MASK]"] * 3).batch(2)
    assert len(model.predict(gaps, verbose=0)) == 3


@pytest.mark.end_to_end
def test_predict_gives_so_many_pieces_for_each_gap(learned):
    model, _ = learned
    found = model.predict(["the [MASK] sat", "[MASK] [MASK]"], verbose=0)
    assert [[len(gap) for gap in gaps] for gaps in found] == [[2], [2, 2]]
    (more,) = model.predict("the [MASK] sat", top_k=4)
    assert [each["token"] for each in more[:2]] == [each["token"] for each in found[0][0]]
    assert len(more) == 4
    assert [each["probability"] for each in more] == sorted(
        (each["probability"] for each in more), reverse=True
    )
    assert model.top_k == 2


@pytest.mark.slow
def test_a_checkpoint_of_pre_training_opens_as_one(tmp_path):
    keras.utils.set_random_seed(3)
    trainer = PreTrainer(tiny.encoder())
    conversion.save(trainer, tmp_path / "theirs", "huggingface", tiny.tokenizer())
    model = bert_tf.load(tmp_path / "theirs")
    assert type(model) is bert_tf.MaskedLM
    following = bert_tf.NextSentence.from_checkpoint(tmp_path / "theirs")
    np.testing.assert_array_equal(following.classifier.kernel, trainer.next_sentence.kernel)
    np.testing.assert_array_equal(
        model.masked_lm.transform.kernel, trainer.masked_lm.transform.kernel
    )
    model.save_checkpoint(tmp_path / "ours")
    again = bert_tf.load(tmp_path / "ours")
    assert again.predict("the [MASK]") == model.predict("the [MASK]")


def test_mistakes_are_one_sentence():
    model = tiny.filler()
    said = "text 1 has no [MASK]; write [MASK] where a word is missing"
    assert refusal(model.predict, ["a [MASK]", "no gap"]) == said
    # An export has the same check; the network is not called.
    assert refusal(bert_tf.MaskedLM.answers, None, ["a [MASK]", "no gap"]) == said
    said = "a MaskedLM learns from texts alone; remove y"
    assert refusal(model.fit, TEXTS, TEXTS) == said
    assert refusal(model.fit, ["the cat", " "]) == "text 1 is empty; write one, or remove the row"
    assert refusal(model.fit, []) == "there are no rows; give at least one"
    assert refusal(model.predict, "a [MASK]", top_k=999).startswith(
        "top_k is 999; it must be from 1"
    )
    assert refusal(tiny.filler, top_k=0) == "top_k must be at least 1, got 0"
    assert refusal(tiny.filler, max_length=2) == "max_length must be at least 3, got 2"
    endless = tf.data.Dataset.from_tensor_slices(TEXTS).batch(8).repeat()
    assert refusal(model.fit, endless) == "the dataset is endless; give steps_per_epoch"
