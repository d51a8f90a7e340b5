"""Programs of other libraries on docs/migrating/, and ours next to them, give the same answers.

transformers 4 has an environment of its own, `.venv-transformers4/`; `make test-all` makes it.
"""

import ast
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import reading
from tests.checkpoints import tiny_models

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv-transformers4"
PAGE = ROOT / "docs/migrating/from_transformers.md"
BEFORE = re.compile(r'^```python title="transformers 4"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
GOLDEN = {"good": 0.174819, "bad": 0.516937, "neither": 0.308244}
QUIET = {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "USE_TF": "1", "USE_TORCH": "0"}


def run_there(folder, *arguments):
    """The last line that transformers 4 prints."""
    if not (ENVIRONMENT / "ready").is_file():
        pytest.skip(f"transformers 4 is not installed in {ENVIRONMENT}; make it: make test-all")
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", *arguments],
        cwd=folder,
        env=os.environ | QUIET,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return (done.stdout.splitlines() or [""])[-1]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A folder with checkpoints of every class, and what transformers answers with them."""
    folder = tmp_path_factory.mktemp("old")
    line = run_there(folder, Path(__file__).with_name("ask_transformers4.py"))
    return folder, json.loads(line)


@pytest.mark.slow
def test_blocks_of_transformers_run_and_the_first_answers_as_ours(old):
    folder, _ = old
    load, fine_tune, export = BEFORE.findall(PAGE.read_text())

    theirs = run_there(folder, "-c", load)
    found = ast.literal_eval(theirs)
    ours = bert_tf.load(folder / "reviews").predict("what a good film")["probabilities"]
    assert ours == pytest.approx(found, abs=2e-5)

    run_there(folder, "-c", fine_tune)
    run_there(folder, "-c", export)
    for name in ("fine_tuned", "reviews"):
        assert type(bert_tf.load(folder / name)).__name__ == "TextClassifier"
    assert bert_tf.load(folder / "fine_tuned").labels == ("bad", "good")
    assert reading.find(folder / "exported").description.model == "TextClassifier"
    ours = bert_tf.TextClassifier.from_checkpoint(folder / "google-bert" / "bert-base-uncased")
    ours.fit(["a good film", "a cat"], ["good", "bad"], epochs=1, verbose=0)


@pytest.mark.slow
def test_pipelines_answer_as_ours(old):
    folder, theirs = old

    ours = bert_tf.load(folder / "reviews").predict("what a good film .")["probabilities"]
    expected = {each["label"]: each["score"] for each in theirs["reviews"]}
    assert ours == pytest.approx(expected, abs=2e-5)

    ours = bert_tf.load(folder / "entities").predict("the cat sat on the mat")
    names = {"type": "entity_group", "text": "word", "start": "start", "end": "end"}
    assert [[each[name] for name in names] for each in ours] == [
        [each[name] for name in names.values()] for each in theirs["entities"]
    ]
    scores = [each["score"] for each in theirs["entities"]]
    np.testing.assert_allclose([each["score"] for each in ours], scores, atol=2e-5)

    (ours,) = bert_tf.load(folder / "gaps").predict("the [MASK] sat .")
    assert [each["token"] for each in ours] == [each["token_str"] for each in theirs["gaps"]]
    scores = [each["score"] for each in theirs["gaps"]]
    np.testing.assert_allclose([each["probability"] for each in ours], scores, atol=2e-5)

    ours = bert_tf.load(folder / "follows").predict(("the cat", "sat ."))
    assert ours == pytest.approx(theirs["follows"][0], abs=2e-5)

    ours = bert_tf.load(folder / "endings").predict("the cat", ["sat .", "ran ."])
    np.testing.assert_allclose(ours["probabilities"], theirs["endings"], atol=2e-5)

    asker = bert_tf.load(folder / "questions", unanswerable=False)
    ours = asker.predict(question="where ?", context="the cat sat on the mat .")
    names = ("answer", "start", "end")
    assert [ours[name] for name in names] == [theirs["questions"][name] for name in names]
    assert ours["score"] > theirs["questions"]["score"]

    # Keras's own file of weights has the same layout.
    for name in ("config.json", "vocab.txt"):
        (folder / "weights").mkdir(exist_ok=True)
        shutil.copy(folder / "reviews" / name, folder / "weights")
    shutil.copy(folder / "weights.h5", folder / "weights" / "tf_model.h5")
    for name in ("reviews", "weights"):
        ours = bert_tf.load(folder / name).predict("what a good film .")["probabilities"]
        assert ours == pytest.approx(expected, abs=2e-5), name


def test_a_classifier_of_transformers_4_answers_as_it_did_there():
    """Probabilities that transformers 4.57.6 with TensorFlow 2.20.0 computed."""
    folder = tiny_models.FIXTURES / "huggingface_tf" / "BertForSequenceClassification"
    logits = np.load(folder / "expected.npz")["logits"]
    assert logits.shape == (2, 3)

    answer = bert_tf.load(folder).predict("a b .")
    assert answer["probabilities"] == pytest.approx(GOLDEN, abs=2e-5)
    assert answer["label"] == max(GOLDEN, key=GOLDEN.get)


@pytest.mark.slow
def test_a_preset_of_keras_hub_answers_as_there(tmp_path):
    hub = pytest.importorskip("keras_hub", reason="keras-hub is not installed")
    keras.utils.set_random_seed(0)
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 12}
    backbone = hub.models.BertBackbone(len(tiny_models.PIECES), **sizes, max_sequence_length=7)
    tokenizer = hub.models.BertTokenizer(list(tiny_models.PIECES), lowercase=False)
    preprocessor = hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=7)
    theirs = hub.models.BertTextClassifier(backbone, 2, preprocessor=preprocessor)
    for weight in theirs.weights:
        weight.assign_add(0.3 * keras.random.normal(weight.shape))
    theirs.save_to_preset(str(tmp_path / "my_preset"))

    texts = ["a b .", "c"]
    expected = theirs.predict(texts, verbose=0)
    expected = np.exp(expected) / np.exp(expected).sum(-1, keepdims=True)
    model = bert_tf.load(tmp_path / "my_preset", labels=["bad", "good"])
    ours = model.predict(texts, verbose=0)
    found = [list(each["probabilities"].values()) for each in ours]
    np.testing.assert_allclose(found, expected, atol=2e-5)
