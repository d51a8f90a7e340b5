"""The exported regression gives the model's numbers."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401

from bert_tf import TextRegressor
from bert_tf.config.reading import load_config
from bert_tf.encoder.encoder import Encoder
from bert_tf.tasks import registry
from bert_tf.text import Preprocessor
from tests import tiny
from tests.tasks.tiny_texts import write_config

TEXTS = ["the cat sat on the mat .", "", "dogs ran\N{SNOWMAN}", "a fish " * 40]


@pytest.mark.parametrize("pair", [pytest.param(False, marks=pytest.mark.slow), True])
def test_scores_are_those_of_the_model(tokenizer, tmp_path, pair):
    encoder, out = Encoder(tiny.encoder_config()), tmp_path / "model"
    model = TextRegressor(encoder, tokenizer, pair=pair, max_length=16)
    model.export(out)
    loaded = tf.saved_model.load(out)
    texts = (TEXTS, TEXTS[::-1]) if pair else (TEXTS,)
    names = ("text_a", "text_b") if pair else ("text",)
    inputs = {name: tf.constant(each) for name, each in zip(names, texts, strict=True)}
    answers = loaded.signatures["serving_default"](**inputs)
    assert list(answers) == ["score"]
    expected = model(Preprocessor(tokenizer, 16)(texts))
    np.testing.assert_allclose(answers["score"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(loaded.serve(inputs)["score"], expected, rtol=1e-5, atol=1e-5)
    none = loaded.serve({name: tf.constant([], tf.string) for name in names})
    assert none["score"].shape == (0,)
    assert not (out / "assets" / "labels.txt").exists()


@pytest.mark.parametrize(
    ("data", "pair"),
    [
        ("format: tsv", False),
        ("format: tsv, text_columns: [a, b]", True),
        ("format: cola", False),
        ("format: rte", True),
    ],
)
def test_the_format_decides_whether_an_input_is_a_pair(tokenizer, tmp_path, data, pair):
    path = write_config(tmp_path, "classification", f"path: ., {data}")
    task = registry.family("classification").task_class()(load_config(path), ["a", "b"])
    model = task.model(Encoder(tiny.encoder_config()), tokenizer)
    assert model.settings == {"max_length": 24, "pair": pair}
