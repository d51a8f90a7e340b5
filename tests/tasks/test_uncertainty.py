"""Calibration, abstaining, intervals and comparisons, asked in every way."""

import numpy as np
import pytest

import bert_tf
from bert_tf.config.run import CalibratedRun
from bert_tf.tasks import registry, uncertainty
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal

LOGITS = np.array(
    [[2, 0, 0], [0, 3, 0], [0, 0, 4], [5, 0, 0], [0, 2, 1], [1, 0, 3], [4, 2, 0], [0, 1, 0]], float
)
TARGETS = np.array([0, 1, 0, 0, 2, 2, 1, 1])
# Some of equal texts have another label, which no model can get right.
MIXED = [("bad", "good")[(row % 2 == 0) ^ (row % 5 == 0)] for row in range(24)]


def test_the_temperature_is_that_of_scikit_learn():
    # 1 / beta_ of sklearn.calibration._TemperatureScaling().fit(LOGITS, TARGETS), version 1.9.1.
    assert uncertainty.best_temperature(LOGITS, TARGETS) == pytest.approx(
        2.2407231239045253, abs=1e-3
    )
    # Two labels of their own, each with the odds of a pair of classes.
    pairs = np.stack([LOGITS[:, 0] - LOGITS[:, 1], LOGITS[:, 1] - LOGITS[:, 2]], axis=1)
    given = (pairs > 0) ^ (np.arange(16).reshape(8, 2) % 5 == 0)
    flat = np.stack([pairs.ravel(), np.zeros(16)], axis=1)
    expected = uncertainty.best_temperature(flat, 1 - given.ravel().astype(int))
    found = uncertainty.best_temperature(pairs, given.astype(float))
    assert found == pytest.approx(expected, abs=1e-3)


def test_all_right_rows_keep_the_temperature(caplog):
    assert uncertainty.best_temperature(LOGITS, LOGITS.argmax(axis=1)) == 1
    assert "all 8 rows are right" in caplog.text


def fitted(make, x, y, **settings):
    model = make(**settings)
    model.fit(x, y, epochs=6, learning_rate=0.01, seed=1, verbose=0)
    return model


def of_entities(answer):
    return [each["score"] for each in answer]


CASES = {
    "classes": (tiny.classifier, tiny.TEXTS, MIXED, lambda a: list(a["probabilities"].values())),
    "pairs": (
        tiny.classifier,
        (tiny.TEXTS, tiny.TEXTS[::-1]),
        MIXED,
        lambda a: list(a["probabilities"].values()),
    ),
    "labels": (
        tiny.multi_labeller,
        tiny.TEXTS,
        [[each] for each in MIXED],
        lambda a: list(a["probabilities"].values()),
    ),
    "choices": (
        tiny.chooser,
        (tiny.TEXTS, tiny.CHOICES * 3),
        [each == "bad" for each in MIXED],
        lambda a: a["probabilities"],
    ),
    "tags": (
        tiny.tagger,
        [["the", "cat"]] * 24,
        [["O", "B-x" if each == "bad" else "B-y"] for each in MIXED],
        of_entities,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_calibrated_model_answers_alike_everywhere(name, tmp_path):
    make, x, y, probabilities = CASES[name]
    model = fitted(make, x, y)
    asked = [" ".join(each) for each in x] if name == "tags" else x
    before = model.predict(asked, verbose=0)
    loss = model.evaluate(x, y, verbose=0)["loss"]
    found = model.calibrate(x, y, verbose=0)
    assert list(found) == list(uncertainty.CALIBRATION)
    assert found["temperature"] == model.temperature != 1
    assert found["calibration_error_after"] <= found["calibration_error_before"]
    assert model.evaluate(x, y, verbose=0)["loss"] < loss
    answers = model.predict(asked, verbose=0)
    keys = {"label", "labels", "choice", "type"}
    for one, other in zip(before, answers, strict=True):
        several = isinstance(one, list)
        for a, b in zip(*([one], [other]) if not several else (one, other), strict=True):
            assert {k: a[k] for k in keys & {*a}} == {k: b[k] for k in keys & {*b}}
    model.save(tmp_path / "model.keras")
    model.save_checkpoint(tmp_path / "native")
    model.export(tmp_path / "saved")
    model.export(tmp_path / "model.tflite", format="litert")
    for path in ("model.keras", "native", "saved", "model.tflite"):
        other = bert_tf.load(tmp_path / path)
        assert other.settings["temperature"] == model.temperature, path
        for one, same in zip(other.predict(asked, verbose=0), answers, strict=True):
            np.testing.assert_allclose(probabilities(one), probabilities(same), atol=1e-5)
    assert model.calibrate(x, y, verbose=0)["temperature"] == pytest.approx(
        found["temperature"], rel=1e-2
    )
    assert model.student(1).temperature == 1
    model.fit(x, y, verbose=0)
    assert model.temperature == 1


def test_what_cannot_be_calibrated_is_refused():
    model = fitted(tiny.classifier, tiny.TEXTS, tiny.LABELS)
    texts, labels = tiny.TEXTS, tiny.LABELS
    assert refusal(model.calibrate, texts).startswith("the labels are missing")
    assert "the same label for all rows" in refusal(model.calibrate, texts[:2], ["good"] * 2)
    assert "takes strings, not ids" in refusal(model.calibrate, {"input_word_ids": [[2]]}, [1])
    assert "no label" in refusal(model.calibrate, [], [])
    model.classifier.bias.assign([np.nan, 0])
    assert "not finite" in refusal(model.calibrate, texts, labels)
    assert "to calibrate; calibrate a TextClassifier" in refusal(
        tiny.regressor().calibrate, texts, [1.0] * len(texts)
    )
    assert "evaluated or calibrated" in refusal(tiny.zero_shot().calibrate, texts, labels)
    assert refusal(tiny.classifier, temperature=0) == "temperature must be above 0, got 0"


def test_yaml_has_the_key_where_the_model_calibrates():
    for family in registry.families():
        if family.config is not None:
            has_key = issubclass(family.config, CalibratedRun)
            assert has_key == family.model_class().calibrates, family.name
