"""The exported regression gives the model's numbers."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import TextRegressor
from bert_tf.config.reading import load_config
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.served_model import ServedModel
from bert_tf.tasks import registry
from bert_tf.text import Preprocessor
from tests import tiny
from tests.tasks.tiny_texts import write_config

TEXTS = ["the cat sat on the mat .", "", "dogs ran\N{SNOWMAN}", "a fish " * 40]


def test_scores_are_those_of_the_model(models, tokenizer, exported, loaded):
    served, texts = loaded("regression"), tf.constant(TEXTS)
    answers = served.signatures["serving_default"](text=texts)
    assert list(answers) == ["score"]
    expected = models("regression")(Preprocessor(tokenizer, 32)(TEXTS))
    np.testing.assert_allclose(answers["score"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(served.serve(texts)["score"], expected, rtol=1e-5, atol=1e-5)
    assert served.serve(tf.constant([], tf.string))["score"].shape == (0,)
    assert not (exported("regression") / "assets" / "labels.txt").exists()


def test_scores_of_pairs_are_those_of_the_model(models, tokenizer):
    model = TextRegressor(models("regression").encoder, tokenizer, pair=True, max_length=16)
    signature = model.with_network(ServedModel(model)).signatures()["serving_default"]
    texts = (TEXTS, TEXTS[::-1])
    inputs = dict(zip(("text_a", "text_b"), map(tf.constant, texts), strict=True))
    assert [*signature.inputs] == [*inputs]
    expected = model(Preprocessor(tokenizer, 16)(texts))
    np.testing.assert_allclose(signature.answer(inputs)["score"], expected, rtol=1e-5, atol=1e-5)
    none = {name: tf.constant([], tf.string) for name in inputs}
    assert signature.answer(none)["score"].shape == (0,)


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
