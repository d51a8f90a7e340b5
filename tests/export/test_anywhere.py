"""Exports answer wherever they are taken: nothing of what made them is needed any more."""

import pickle
import shutil
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.asking.record import Record
from tests import tiny
from tests.export.conftest import TASKS, cases
from tests.export.requests import assert_same, in_session, request

# Loads all the given exports, then calls each; the packages that made them cannot be imported.
_ASK = """
import pickle, sys
for name in ("bert_tf", "export", "tf_keras", "tensorflow_models"):
    sys.modules[name] = None
import tensorflow as tf, tensorflow_text
with open(sys.argv[1], "rb") as file:
    asked = pickle.load(file)
loaded = {name: tf.saved_model.load(each["folder"]) for name, each in asked.items()}
answers = {
    name: {
        signature: {
            key: value.numpy()
            for key, value in loaded[name].signatures[signature](
                **{key: tf.constant(value) for key, value in inputs.items()}
            ).items()
        }
        for signature, inputs in each["requests"].items()
    }
    for name, each in asked.items()
}
with open(sys.argv[1], "wb") as file:
    pickle.dump(answers, file)
"""
SERVED = [*TASKS]


def answers(loaded):
    """What each signature says to a request of several rows."""
    return {
        name: {key: value.numpy() for key, value in each(**request(each)).items()}
        for name, each in loaded.signatures.items()
    }


def assert_all_same(found, expected):
    assert found.keys() == expected.keys()
    for signature, outputs in expected.items():
        assert_same(found[signature], outputs, tolerance=1e-5)


@pytest.mark.slow
def test_all_load_in_one_process_of_tensorflow_alone(exported, loaded, tmp_path):
    asked = {}
    for family in SERVED:
        moved = tmp_path / "moved" / f"the {family}"
        shutil.copytree(exported(family), moved)
        requests = {
            name: {key: value.numpy().tolist() for key, value in request(signature).items()}
            for name, signature in loaded(family).signatures.items()
        }
        asked[family] = {"folder": str(moved), "requests": requests}
    path = tmp_path / "asked.pickle"
    path.write_bytes(pickle.dumps(asked))
    subprocess.run([sys.executable, "-I", "-c", _ASK, path], check=True, cwd=tmp_path)
    found = pickle.loads(path.read_bytes())
    assert found.keys() == set(SERVED)
    for family in SERVED:
        assert_all_same(found[family], answers(loaded(family)))


@pytest.mark.parametrize(("family", "settings"), cases(hub=False))
def test_what_was_loaded_can_be_saved_again(exported, loaded, tmp_path, family, settings):
    shutil.copytree(exported(family, **settings), tmp_path / "first")
    first = tf.saved_model.load(tmp_path / "first")
    tf.saved_model.save(first, tmp_path / "second", signatures=dict(first.signatures))
    del first
    shutil.rmtree(tmp_path / "first")
    shutil.move(tmp_path / "second", tmp_path / "third")
    again = tf.saved_model.load(tmp_path / "third")
    expected = loaded(family, **settings)
    assert_all_same(answers(again), answers(expected))
    inputs = request(expected.signatures["serving_default"])
    assert_same(again.serve(inputs), expected.serve(inputs), 1e-5)
    vocabulary = tmp_path / "third" / "assets" / "vocab.txt"
    assert vocabulary.read_text().splitlines() == tiny.VOCABULARY
    found, expected = map(Record.of_saved_model, (tmp_path / "third", exported(family, **settings)))
    assert found == expected and found is not None


def by_hub(folder):
    """What `hub.load` finds."""
    hub = pytest.importorskip("tensorflow_hub", reason="it comes with the extra model-garden")
    loaded = hub.load(str(folder))
    return lambda name, inputs: loaded.signatures[name](**inputs)


def by_keras(folder):
    """A layer of Keras 3, which has one signature and returns strings."""
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    inputs = {
        name: keras.Input(spec.shape[1:], dtype="string", name=name)
        for name, spec in signature.structured_input_signature[1].items()
    }
    layer = keras.layers.TFSMLayer(folder, call_endpoint="serve")
    # A layer of one text takes it without its name, too.
    given = inputs if len(inputs) > 1 else next(iter(inputs.values()))
    model = keras.Model(inputs, layer(given))
    return lambda name, texts: model.predict(texts, batch_size=4, verbose=0)


def by_session(folder):
    """A session of TensorFlow 1, which TensorFlow Serving and its C library have."""
    ask = in_session(folder)
    return lambda name, inputs: ask(name, **inputs)


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("way", "family", "settings"),
    [
        pytest.param(way, *case.values, marks=case.marks)
        for way, quick in (
            (by_hub, []),
            (by_keras, [("classification", {}), ("nsp", {})]),
            (by_session, []),
        )
        for case in cases(*quick, hub=False)
    ],
)
def test_other_programs_get_the_same_answers(exported, loaded, loads_once, way, family, settings):
    expected, ask = loaded(family, **settings), way(exported(family, **settings))
    for name, signature in expected.signatures.items():
        if name != "serving_default" and way is by_keras:
            continue
        # One batch is a single chunk, the other needs several.
        for times in (1, 150) if way is by_session else (1,):
            inputs = request(signature, times)
            assert_same(ask(name, inputs), signature(**inputs), tolerance=1e-4)


@pytest.mark.slow
def test_a_session_takes_texts_in_groups(exported, loaded):
    texts = tf.constant(["a cat [MASK] the mat" + " " * 3_000_000] * 3 + ["[MASK]"])
    answers = in_session(exported("mlm", freeze=True))("serving_default", text=texts)
    assert answers["tokens"].shape[0] == 4
    expected = loaded("mlm", freeze=True).signatures["serving_default"](text=texts)
    assert_same(answers, expected, tolerance=1e-4)
    np.testing.assert_array_equal(answers["tokens"][0], answers["tokens"][1])
