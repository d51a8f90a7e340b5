"""Presets of KerasHub: what it wrote is read, and nothing in them is trusted.

The fixtures are of `tests/fixtures/make_keras_hub.py`. That they compute the same is tested in
test_others.py, and that KerasHub opens what is written in test_in_keras_hub.py.
"""

import json
import shutil

import h5py
import pytest

import bert_tf
from bert_tf.checkpoints import conversion, reading
from bert_tf.io.vocabulary import TokenizerSettings
from bert_tf.text import Tokenizer
from tests.checkpoints import hostile_hdf5
from tests.checkpoints import tiny_models as tiny

CLASSIFIER = "keras_hub/BertTextClassifier"
BIAS = "layers/dense/vars/1"


def changed(path, **fields):
    """Sets arguments of the object that a JSON file describes."""
    described = json.loads(path.read_text())
    path.write_text(json.dumps(described | {"config": described["config"] | fields}))


def test_texts_are_read_as_the_tokenizer_says(tmp_path):
    folder = tiny.copied(CLASSIFIER, tmp_path)
    model = bert_tf.load(folder)
    expected = TokenizerSettings(lower_case=True, strip_accents=False, longest_word=100)
    assert (model.tokenizer.settings, model.max_length) == (expected, 6)
    assert model.tokenizer.vocabulary == tiny.PIECES
    # keras-hub 0.32.0: the accent is no piece, and it stays.
    assert model.tokenizer.tokenize(["Ab d.", "á b"]).to_list() == [[5, 10, 8, 13], [1, 6]]


def test_what_save_to_preset_does_not_say_has_a_default(tmp_path):
    folder = tiny.copied(CLASSIFIER, tmp_path)
    for name in ("metadata.json", "preprocessor.json", "tokenizer.json"):
        (folder / name).unlink()
    shutil.rmtree(folder / "assets")
    found = reading.find(folder)
    assert (found.description.settings, found.description.lower_case) == ({}, None)
    assert found.read_vocabulary() is None
    (folder / "task.json").unlink()
    assert reading.find(folder).description.model == "Encoder"


def test_the_names_of_the_first_versions_are_read(tmp_path):
    folder = tiny.copied(CLASSIFIER, tmp_path)
    for name in ("model", "task"):
        with h5py.File(folder / f"{name}.weights.h5", "r+") as file:
            file.move("layers", "_layer_checkpoint_dependencies")
    path = folder / "config.json"
    path.write_text(path.read_text().replace("keras_hub>", "keras_nlp>"))
    tiny.assert_equal(tiny.load(folder)[0], tiny.load(tiny.FIXTURES / CLASSIFIER)[0])


@pytest.mark.parametrize(
    ("file", "fields", "told"),
    [
        ("task.json", {"activation": "tanh"}, "activation is 'tanh'; bert_tf reads only classif"),
        ("task.json", {"activation": {"a": 1}}, "activation is {'a': 1}; bert_tf reads only"),
        ("tokenizer.json", {"split": False}, "split is False; bert_tf always cuts"),
        ("tokenizer.json", {"suffix_indicator": "@@"}, "suffix_indicator is '@@'"),
        ("tokenizer.json", {"lowercase": "yes"}, "lower_case of the tokenizer is 'yes'"),
        ("config.json", {"num_layers": 10**9}, "but its configuration says 1000000000"),
        ("config.json", {"num_layers": "2"}, "num_hidden_layers must be a whole number"),
        ("config.json", {"hidden_dim": 4}, "has shape"),
    ],
)
def test_what_a_preset_says_is_checked(tmp_path, file, fields, told):
    folder = tiny.copied(CLASSIFIER, tmp_path)
    changed(folder / file, **fields)
    tiny.refused(told, reading.find, folder)


@pytest.mark.parametrize(
    ("described", "told"),
    [
        ({"registered_name": "keras_hub>GemmaBackbone", "config": {}}, "class is 'GemmaBackbone'"),
        ({"registered_name": ["Bert"], "config": {}}, "registered_name must be a text"),
        ({"registered_name": "keras_hub>BertBackbone"}, "config must be"),
    ],
)
def test_another_architecture_is_refused(tmp_path, described, told):
    (tmp_path / "config.json").write_text(json.dumps(described))
    assert "config.json: " in tiny.refused(told, reading.find, tmp_path)


def test_one_output_is_a_number_and_has_no_softmax(tmp_path):
    conversion.save(tiny.make("regressor"), tmp_path / "out", "keras_hub")
    assert type(tiny.load(tmp_path / "out")[0]).__name__ == "TextRegressor"
    changed(tmp_path / "out" / "task.json", activation="softmax")
    tiny.refused("activation is 'softmax'", reading.find, tmp_path / "out")


@pytest.mark.parametrize("change", hostile_hdf5.CHANGES, ids=lambda change: change.__name__)
def test_weights_are_not_trusted(tmp_path, change):
    folder = tiny.copied(CLASSIFIER, tmp_path)
    with h5py.File(folder / "model.weights.h5", "r+") as file:
        del file[BIAS]
        change(file, BIAS)
    tiny.refused(hostile_hdf5.CHANGES[change], tiny.load, folder)


@pytest.mark.parametrize(
    ("kind", "sizes", "warnings"),
    [
        ("encoder", {"hidden_act": "gelu_new"}, []),
        ("filler", {"hidden_act": "gelu_new", "masked_lm_head": "keras_hub"}, []),
        ("filler", {"hidden_act": "gelu_new"}, ["masked_lm_head keras_hub, but the model has"]),
        ("encoder", {"hidden_act": "gelu"}, ["hidden_act gelu_new, but the model has gelu"]),
        ("tokens", {}, ["does not read classifier"]),
    ],
)
def test_what_keras_hub_does_differently_is_reported(tmp_path, capsys, kind, sizes, warnings):
    conversion.save(tiny.make(kind, **sizes), tmp_path / "out", "keras_hub", Tokenizer(tiny.PIECES))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(warnings)
    assert all(each in line for each, line in zip(warnings, lines, strict=True))
