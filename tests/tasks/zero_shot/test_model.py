"""Zero-shot classification: answers are those of transformers, in every export."""

import json

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.interpret import inspect
from tests.checkpoints.tiny_models import FIXTURES
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal

FOLDER = FIXTURES / "zero_shot"
TEXTS, LABELS = ["a cat sat.", "dogs ran"], ["cat", "dogs", "sat about"]


@pytest.fixture(scope="module")
def model():
    return bert_tf.ZeroShotClassifier.from_checkpoint(FOLDER)


@pytest.mark.end_to_end
def test_answers_are_those_of_transformers(model):
    # The pipeline of transformers 5.24.0 with torch 2.13.0; see tests/fixtures/make_zero_shot.py.
    for case in json.loads((FOLDER / "expected.json").read_text()):
        text, expected = case.pop("text"), case.pop("scores")
        found = model.predict(text, **case)
        assert found["probabilities"] == pytest.approx(expected, abs=1e-5)
        assert found["label"] == max(expected, key=expected.get)
        assert found["probability"] == found["probabilities"][found["label"]]
    assert model.max_length == 24  # of the tokenizer's files


@pytest.mark.end_to_end
@pytest.mark.parametrize("multi_label", [pytest.param(False, marks=pytest.mark.slow), True])
def test_settings_are_kept_wherever_the_model_goes(model, tmp_path, multi_label):
    settings = {"multi_label": multi_label, "hypothesis_template": "text about {}"}
    own = bert_tf.ZeroShotClassifier.from_checkpoint(FOLDER, **settings)
    expected = own.predict(TEXTS, labels=LABELS)
    assert expected == model.predict(TEXTS, labels=LABELS, **settings)
    assert model.settings["multi_label"] is False
    own.save(tmp_path / "model.keras")
    own.save_checkpoint(tmp_path / "native")
    own.save_checkpoint(tmp_path / "transformers", format="huggingface")
    own.export(tmp_path / "saved")
    own.export(tmp_path / "ids.tflite", format="litert")
    own.export(tmp_path / "strings.tflite", format="litert", inputs="strings")
    for name in ("model.keras", "native", "transformers", "saved", "ids.tflite", "strings.tflite"):
        loaded = bert_tf.load(tmp_path / name)
        for answer, other in zip(loaded.predict(TEXTS, labels=LABELS), expected, strict=True):
            assert answer["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5), name
        if name in ("model.keras", "native", "transformers"):
            assert isinstance(loaded, bert_tf.ZeroShotClassifier)
        if name.endswith(".tflite"):  # decided by the program that calls the file
            others = {"multi_label": not multi_label, "hypothesis_template": "a {}"}
            found = loaded.predict(TEXTS[0], labels=LABELS, **others)["probabilities"]
            other = model.predict(TEXTS[0], labels=LABELS, **others)["probabilities"]
            assert found == pytest.approx(other, abs=1e-5)
    said = refusal(
        bert_tf.load(tmp_path / "saved").predict, TEXTS, labels=LABELS, multi_label=not multi_label
    )
    assert said.startswith(f"the export answers with multi_label={multi_label}; export the model")


def test_rows_may_have_candidates_of_their_own(model):
    candidates = [["cat", "dogs"], ["sat about"]]
    found = model.predict((TEXTS, candidates))
    assert [*found[0]["probabilities"]] == candidates[0]
    for text, labels, answer in zip(TEXTS, candidates, found, strict=True):
        alone = model.predict(text, labels=labels)["probabilities"]
        assert answer["probabilities"] == pytest.approx(alone, abs=1e-6)
    assert [*model.predict("dogs ran", labels=[True, False])["probabilities"]] == ["True", "False"]
    assert model.predict([], labels=LABELS) == []


def test_empty_candidates_are_padding(model):
    lists = [["cat", "", "dogs"], ["", "cat", ""], ["", "", ""]]
    served = model.serve(text=["a cat sat."] * 3, candidates=lists)
    assert served["label"].numpy().tolist()[1:] == [b"cat", b""]
    expected = np.zeros([3, 3], np.float32)
    both, one = (model.predict("a cat sat.", labels=each) for each in (["cat", "dogs"], ["cat"]))
    expected[0, [0, 2]] = [*both["probabilities"].values()]
    expected[1, 1] = one["probability"]
    np.testing.assert_allclose(served["probabilities"], expected, atol=1e-6)
    nothing = model.serve(text=tf.constant(["a"]), candidates=tf.zeros([1, 0], tf.string))
    assert nothing["probabilities"].shape == (1, 0) and nothing["label"].numpy() == [b""]


def test_any_order_of_the_labels_and_two_of_them():
    classes = ["neutral", "CONTRADICTION", "entails"], ["not_entailment", "entailment"]
    logits = tf.constant([[3.0, 2.0, 1.0]])
    for labels, score in zip(classes, (-1.0, -1.0), strict=True):
        made = bert_tf.ZeroShotClassifier(tiny.encoder(), tiny.tokenizer(), labels)
        assert made.score(logits[:, : len(labels)], True).numpy() == [score]


@pytest.mark.end_to_end
def test_what_is_refused(model, tmp_path):
    opened = bert_tf.ZeroShotClassifier.from_checkpoint
    heads = FIXTURES / "huggingface_heads"
    no_nli = "requires a classifier of natural language inference, with the labels entailment"
    said = refusal(opened, heads / "BertForSequenceClassification")
    assert no_nli in said and "its labels are good, bad, neither" in said
    assert no_nli in refusal(opened, heads / "BertModel")
    nli = ["entailment", "neutral", "contradiction"]
    assert "lacks the weights classifier" in refusal(opened, heads / "BertModel", labels=nli)
    assert "labels are Entailment, neutral" in refusal(opened, FOLDER, labels=nli)
    for call in (model.fit, model.evaluate):
        assert "fine-tune a TextClassifier on pairs" in refusal(call, TEXTS, ["cat", "dogs"])
    assert "give labels for all texts" in refusal(model.predict, TEXTS)
    assert "labels is one string" in refusal(model.predict, TEXTS, labels="cat")
    assert "give one or more" in refusal(model.predict, TEXTS, labels=[])
    assert "'cat' occurs twice" in refusal(model.predict, TEXTS, labels=["cat", "cat"])
    assert "candidate 1 is empty" in refusal(model.predict, TEXTS, labels=["cat", ""])
    assert "or else lists of candidates" in refusal(
        model.predict, (TEXTS, [["a"]] * 2), labels=["cat"]
    )
    for template in ("", "about", "{} and {}"):
        said = refusal(model.predict, TEXTS, labels=LABELS, hypothesis_template=template)
        assert said.startswith("hypothesis_template is ")
        assert said == refusal(opened, FOLDER, hypothesis_template=template)
    assert "reads pairs" in refusal(opened, FOLDER, pair=False)


@pytest.mark.end_to_end
def test_it_has_a_page(tmp_path):
    tiny.zero_shot().save(tmp_path / "model.keras")
    rows = [{"text": "the cat", "candidates": ["sat", "<b>ran</b>"]}]
    inspect(tmp_path / "model.keras", rows, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "&lt;b&gt;ran" in page and "<b>ran" not in page
