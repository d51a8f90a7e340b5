"""Exports give the numbers that the network gives, whatever else is in the batch."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import TextEmbedder, TextRegressor
from bert_tf.export.served_model import ServedModel
from bert_tf.text import Preprocessor
from tests import tiny
from tests.export import odd_texts

TEXTS = ["the cat sat on the mat .", "", "dogs ran\N{SNOWMAN}", "a fish " * 40]
PAIRS = TEXTS, TEXTS[::-1]
CONTEXTS = TEXTS[:3]
CHOICES = [["on the mat", "fish", ""], ["a bird flew", "the sea " * 40, "good"], ["", "", "a"]]
# Family -> an output, and how it is computed from the network's output.
NUMBERS = {
    "classification": ("probabilities", tf.nn.softmax),
    "pair": ("probabilities", tf.nn.softmax),
    "regression": ("score", tf.identity),
    # Class 0: the second text follows the first.
    "nsp": ("is_next", lambda logits: tf.nn.softmax(logits)[:, 0]),
    "embedding": ("embedding", tf.identity),
}


@pytest.fixture
def ask(loaded):
    """Gives what `serving_default` of a family answers to columns of texts."""

    def answer(family, *columns):
        signature = loaded(family).signatures["serving_default"]
        names = sorted(signature.structured_input_signature[1])
        given = {
            name: column if tf.is_tensor(column) else tf.constant(column, tf.string, [len(column)])
            for name, column in zip(names, columns, strict=True)
        }
        return {name: value.numpy() for name, value in signature(**given).items()}

    return answer


@pytest.mark.end_to_end
@pytest.mark.parametrize("family", NUMBERS)
def test_numbers_are_those_of_the_network(ask, models, loaded, family):
    model, (name, number) = models(family), NUMBERS[family]
    columns = PAIRS if family in ("pair", "nsp") else (TEXTS,)
    found = ask(family, *columns)[name]
    inputs = Preprocessor(model.tokenizer, 32)(columns if len(columns) > 1 else TEXTS)
    np.testing.assert_allclose(found, number(model(inputs)), rtol=1e-5, atol=1e-5)
    assert np.ptp(found, axis=0).all()
    given = dict(zip(sorted(model.input_names), map(tf.constant, columns), strict=True))
    serve = loaded(family).serve
    for way in (given, *given.values()) if len(given) == 1 else (given,):
        np.testing.assert_array_equal(serve(way)[name], found)
    empty = ask(family, *([] for _ in columns))
    assert {key: value.shape[1:] for key, value in empty.items()} == {
        key: value.shape[1:] for key, value in ask(family, *columns).items()
    }


@pytest.mark.parametrize("family", ["classification", "regression", "embedding"])
def test_a_batch_of_any_size_and_any_bytes_is_answered_as_its_rows_are(ask, family):
    odd = [*odd_texts.HARD[:5], "cat " * 250_000, ""]
    name, _ = NUMBERS[family]
    # Enough tokens for several chunks, and enough bytes for several groups.
    many, few = ask(family, odd * 20)[name], ask(family, odd)[name]
    np.testing.assert_allclose(many, np.concatenate([few] * 20), atol=1e-5)
    np.testing.assert_allclose(ask(family, odd[:1])[name], few[:1], atol=1e-5)


def test_the_label_is_the_most_probable_class(ask):
    answers = ask("classification", TEXTS)
    best = [[b"no", b"yes", b"maybe"][i] for i in np.argmax(answers["probabilities"], axis=1)]
    assert answers["label"].tolist() == best
    assert answers["classes"].tolist() == [[b"no", b"yes", b"maybe"]] * len(TEXTS)


def test_assets_are_the_vocabulary_and_the_labels(exported):
    assets = exported("classification") / "assets"
    assert (assets / "vocab.txt").read_text().splitlines() == tiny.VOCABULARY
    assert (assets / "labels.txt").read_text().splitlines() == ["no", "yes", "maybe"]
    assert not (exported("regression") / "assets" / "labels.txt").exists()


def of_pairs(model):
    return TextRegressor(model.encoder, model.tokenizer, pair=True, max_length=16)


def of_pooling(pooling):
    return lambda model: TextEmbedder(model.encoder, model.tokenizer, pooling=pooling)


def vectors(pooling):
    """The pooling, from what the encoder gives for padded rows."""

    def of(model, inputs):
        outputs = model.encoder(inputs)
        if pooling == "pooled":
            return outputs["pooled_output"]
        tokens = outputs["sequence_output"].numpy()
        if pooling == "cls":
            return tokens[:, 0]
        rows = zip(tokens, inputs["input_mask"].numpy(), strict=True)
        return np.stack([row[real == 1].mean(axis=0) for row, real in rows])

    return of


@pytest.mark.parametrize(
    ("make", "columns", "name", "expected"),
    [
        (of_pairs, PAIRS, "score", lambda model, inputs: model(inputs)),
        *((of_pooling(p), (TEXTS,), "embedding", vectors(p)) for p in ("cls", "mean", "pooled")),
    ],
)
def test_settings_count(models, make, columns, name, expected):
    model = make(models("embedding"))
    signature = model.with_network(ServedModel(model)).signatures()["serving_default"]
    given = dict(zip(signature.inputs, map(tf.constant, columns), strict=True))
    assert tuple(given) == model.input_names
    preprocess = Preprocessor(model.tokenizer, model.max_length)
    inputs = preprocess(columns if len(columns) > 1 else TEXTS)
    found = signature.answer(given)[name]
    np.testing.assert_allclose(found, expected(model, inputs), rtol=1e-5, atol=1e-5)


@pytest.mark.end_to_end
def test_choices_are_those_of_the_network_and_padding_has_no_probability(ask, models, tokenizer):
    answers = ask("multiple_choice", tf.constant(CHOICES), CONTEXTS)
    choice, probabilities = answers["choice"], answers["probabilities"]
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
    padded = tf.pad(tf.constant(CHOICES * 400), [[0, 0], [0, 2]], constant_values="")
    wider = ask("multiple_choice", padded, CONTEXTS * 400)
    assert wider["choice"].tolist() == choice.tolist() * 400
    expected = np.tile(np.pad(probabilities, [(0, 0), (0, 2)]), [400, 1])
    np.testing.assert_allclose(wider["probabilities"], expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 4), (2, 0), (0, 0), (2, 3)])
def test_where_there_is_nothing_to_choose_the_answer_is_minus_one(ask, shape):
    answers = ask("multiple_choice", tf.fill(shape, ""), ["a"] * shape[0])
    assert answers["choice"].tolist() == [-1] * shape[0]
    assert answers["probabilities"].shape == shape
    assert not answers["probabilities"].any()
