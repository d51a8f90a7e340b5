"""The exported multiple choice model chooses as the model does, among any number of choices."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.text import Preprocessor

CONTEXTS = ["the cat sat .", "", "dogs ran\N{SNOWMAN}"]
CHOICES = [["on the mat", "fish", ""], ["a bird flew", "the sea " * 40, "good"], ["", "", "a"]]


@pytest.fixture
def ask(loaded):
    signature = loaded("multiple_choice").signatures["serving_default"]

    def answer(contexts, choices):
        inputs = {"context": tf.constant(contexts, tf.string), "choices": choices}
        answers = signature(**inputs)
        return answers["choice"].numpy(), answers["probabilities"].numpy()

    return answer


def test_probabilities_are_those_of_the_model_and_padding_has_none(ask, loaded, models, tokenizer):
    choice, probabilities = ask(CONTEXTS, tf.constant(CHOICES))
    model, preprocess = models("multiple_choice"), Preprocessor(tokenizer, 32)
    for row, (context, choices) in enumerate(zip(CONTEXTS, CHOICES, strict=True)):
        real = [i for i, each in enumerate(choices) if each]
        inputs = preprocess(([context] * len(real), [choices[i] for i in real]))
        logits = model({name: values[tf.newaxis] for name, values in inputs.items()})
        expected = np.zeros(3)
        expected[real] = tf.nn.softmax(logits)[0]
        np.testing.assert_allclose(probabilities[row], expected, atol=1e-6)
        assert choice[row] == expected.argmax()
    assert choice.dtype == np.int32
    inputs = {"context": tf.constant(CONTEXTS), "choices": tf.constant(CHOICES)}
    np.testing.assert_array_equal(loaded("multiple_choice").serve(inputs)["choice"], choice)


def test_more_padding_changes_nothing(ask):
    choice, probabilities = ask(CONTEXTS, tf.constant(CHOICES))
    padded = tf.pad(tf.constant(CHOICES), [[0, 0], [0, 2]], constant_values="")
    wider, wide = ask(CONTEXTS, padded)
    np.testing.assert_array_equal(wider, choice)
    np.testing.assert_allclose(wide, np.pad(probabilities, [(0, 0), (0, 2)]), atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 4), (2, 0), (0, 0), (2, 3)])
def test_where_there_is_nothing_to_choose_the_answer_is_minus_one(ask, shape):
    choice, probabilities = ask(["a"] * shape[0], tf.fill(shape, ""))
    assert choice.tolist() == [-1] * shape[0]
    assert probabilities.shape == shape
    assert not probabilities.any()


def test_odd_bytes_long_texts_and_large_batches_are_answered(ask):
    odd = [b"\xff\xfe\x00", "\N{PILE OF POO}", "\u05e9\u05dc\u05d5\u05dd", "cat " * 250_000]
    choice, probabilities = ask(odd, tf.constant([odd] * 4))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    many, _ = ask(CONTEXTS * 400, tf.constant(CHOICES * 400))
    assert many.tolist() == ask(CONTEXTS, tf.constant(CHOICES))[0].tolist() * 400
