"""Arguments of Python calls are checked as keys of YAML are, with the same sentences."""

import math

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf.config.arguments import checked
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from tests import tiny

TEXTS, LABELS = ["the cat", "a dog"] * 4, ["good", "bad"] * 4


def encoder():
    return bert_tf.Encoder(tiny.encoder_config())


@pytest.fixture(scope="module")
def classifier():
    return bert_tf.TextClassifier(encoder(), tiny.tokenizer(), ["bad", "good"])


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("learning_rate", math.nan, "must be a finite number, got NaN"),
        ("learning_rate", math.inf, "must be a finite number, got Infinity"),
        ("learning_rate", -1, "must be greater than 0, got -1"),
        ("learning_rate", 0, "must be greater than 0, got 0"),
        ("learning_rate", "fast", 'must be a number, got "fast"'),
        ("learning_rate", True, "must be a number, got true"),
        ("batch_size", 0, "must be at least 1, got 0"),
        ("batch_size", -1, "must be at least 1, got -1"),
        ("batch_size", 1.5, "must be a whole number, got 1.5"),
        ("batch_size", "8x", 'must be a whole number, got "8x"'),
        ("seed", -1, "must be at least 0, got -1"),
        ("seed", 2**31, "must be at most 2147483647, got 2147483648"),
    ],
)
def test_a_mistake_has_the_same_sentence_in_yaml(classifier, tmp_path, key, value, said):
    with pytest.raises(UserError) as of_python:
        classifier.fit(TEXTS, LABELS, verbose=0, **{key: value})
    assert str(of_python.value) == f"{key} {said}"
    written = {math.nan: ".nan", math.inf: ".inf", True: "true"}.get(value, value)
    with pytest.raises(UserError) as of_yaml:
        load_config(tiny.write_finetuning(tmp_path), [f"train.{key}={written}"])
    assert str(of_yaml.value).endswith(f": train.{key} {said}")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epochs": -1}, "epochs must be at least 1, got -1"),
        ({"class_weight": {"bad": math.nan}}, "class_weight must be a finite number, got NaN"),
        ({"class_weight": {"bad": -1}}, "class_weight must be at least 0, got -1"),
        ({"class_weight": [1, 2]}, "class_weight must be a mapping, got"),
        ({"validation_split": math.nan}, "validation_split must be a finite number, got NaN"),
        ({"validation_split": 1.0}, "validation_split must be less than 1, got 1.0"),
        ({"validation_freq": 0}, "validation_freq must be at least 1 or a list, got 0"),
        ({"steps_per_epoch": "all"}, 'steps_per_epoch must be a whole number, got "all"'),
        ({"shuffle": "yes"}, "shuffle must be true or false or 'batch', got"),
    ],
)
def test_fit_refuses_them_before_it_trains(classifier, given, said):
    before = [weight.numpy() for weight in classifier.weights]
    with pytest.raises(UserError, match=said):
        classifier.fit(TEXTS, LABELS, verbose=0, **given)
    assert all(map(np.array_equal, before, classifier.weights))


@pytest.mark.parametrize("value", [-1, 0, 1.5, "8", True])
def test_answers_refuse_an_invalid_batch_size(classifier, value):
    for ask in (
        lambda: classifier.predict(TEXTS, batch_size=value, verbose=0),
        lambda: classifier.evaluate(TEXTS, LABELS, batch_size=value, verbose=0),
    ):
        with pytest.raises(UserError, match="batch_size must be"):
            ask()


@pytest.mark.parametrize(
    ("cls", "given", "said"),
    [
        ("TextClassifier", {"max_length": 1.5}, "max_length must be a whole number, got 1.5"),
        ("TextClassifier", {"max_length": 2}, "max_length must be at least 3, got 2"),
        ("TextClassifier", {"dropout": math.nan}, "dropout must be a finite number, got NaN"),
        ("TextClassifier", {"labels": ["a", "\ud800"]}, "has half of a surrogate pair"),
        ("TextClassifier", {"labels": "ab"}, "labels is one string; give a list of strings"),
        ("TextRegressor", {"pair": "yes"}, "pair must be true or false"),
        ("QuestionAnswerer", {"n_best": "5"}, "n_best must be a whole number"),
        ("QuestionAnswerer", {"null_threshold": math.nan}, "null_threshold must be a finite"),
        ("TokenClassifier", {"stride": 0}, "stride must be at least 1, got 0"),
        ("TokenClassifier", {"lstm_units": -1}, "lstm_units must be at least 1, got -1"),
        ("MaskedLM", {"top_k": 1.5}, "top_k must be a whole number, got 1.5"),
        ("TextEmbedder", {"normalize": "yes"}, "normalize must be true or false"),
        ("Reranker", {"dropout": 1.0}, "dropout must be less than 1, got 1.0"),
    ],
)
def test_constructors_refuse_them(cls, given, said):
    with pytest.raises(UserError, match=said):
        getattr(bert_tf, cls)(encoder(), tiny.tokenizer(), **given)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda model: model.export("out", version=1.5), "version must be a whole number"),
        (lambda model: model.export("out", freeze="no"), "freeze must be true or false"),
        (lambda model: model.export("o.tflite", format="litert", lengths=[2]), "lengths must be"),
        (lambda model: model.student(0), "num_hidden_layers must be at least 1, got 0"),
        (lambda model: model.compile("adam", rematerialize=1), "rematerialize must be true or"),
        (lambda _: bert_tf.AdamW(math.nan), "learning_rate must be a finite number, got NaN"),
        (lambda _: bert_tf.AdamW(1e-3, weight_decay=-1.0), "weight_decay must be at least 0"),
        (lambda _: bert_tf.WarmupLinearDecay(1e-3, 1.5), "total_steps must be a whole number"),
    ],
)
def test_other_calls_refuse_them(classifier, call, said):
    with pytest.raises(UserError, match=said):
        call(classifier)


def test_numbers_of_numpy_and_schedules_are_taken(classifier):
    classifier.fit(
        TEXTS, LABELS, np.int64(4), epochs=np.int32(1), learning_rate=np.float32(1e-3), verbose=0
    )
    schedule = keras.optimizers.schedules.ExponentialDecay(1e-3, 10, 0.5)
    assert bert_tf.AdamW(schedule)._learning_rate is schedule


def test_a_call_that_python_refuses_says_so_itself():
    @checked
    def train(epochs: int) -> int:
        return epochs

    assert train(np.int64(2)) == 2
    with pytest.raises(TypeError, match=r"train\(\) missing 1 required positional argument"):
        train()
