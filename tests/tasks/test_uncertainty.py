"""Calibration, abstaining, intervals and comparisons, through every interface."""

import json

import numpy as np
import pytest

import bert_tf
from bert_tf.cli.parser import main
from bert_tf.config.run import CalibratedRun
from bert_tf.tasks import registry, uncertainty
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal

LOGITS = np.array(
    [[2, 0, 0], [0, 3, 0], [0, 0, 4], [5, 0, 0], [0, 2, 1], [1, 0, 3], [4, 2, 0], [0, 1, 0]], float
)
TARGETS = np.array([0, 1, 0, 0, 2, 2, 1, 1])
# Some equal texts have different labels, so no model can get all of them right.
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
        [int(each == "bad") for each in MIXED],
        lambda a: a["probabilities"],
    ),
    "tags": (
        tiny.tagger,
        [["the", "cat"]] * 24,
        [["O", "B-x" if each == "bad" else "B-y"] for each in MIXED],
        of_entities,
    ),
}


def slow(names, *fast):
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.end_to_end
@pytest.mark.parametrize("name", slow(CASES, "classes"))
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
    assert "no input 'text'" in refusal(model.calibrate, {"input_word_ids": [[2]]}, [1])
    assert "there are no rows" in refusal(model.calibrate, [], [])
    model.classifier.bias.assign([np.nan, 0])
    assert "not finite" in refusal(model.calibrate, texts, labels)
    assert "has no class probabilities" in refusal(
        tiny.regressor().calibrate, texts, [1.0] * len(texts)
    )
    assert "neither trained nor calibrated" in refusal(tiny.zero_shot().calibrate, texts, labels)
    assert refusal(tiny.classifier, temperature=0) == "temperature must be greater than 0, got 0"


def test_yaml_has_the_key_where_the_model_calibrates():
    for family in registry.families():
        if family.config is not None:
            has_key = issubclass(family.config, CalibratedRun)
            assert has_key == family.model_class().calibrates, family.name


@pytest.mark.end_to_end
@pytest.mark.parametrize("name", slow(["classes", "choices", "zero-shot"], "zero-shot"))
def test_an_unsure_model_abstains_everywhere(name, tmp_path, capsys):
    if name == "zero-shot":
        model, y = tiny.zero_shot(), None
        x = tiny.TEXTS[:4], [["cat", "dog"], ["a"], ["ran", "sat", "the"], ["dog", "mat"]]
    else:
        make, x, y, _ = CASES[name]
        model = fitted(make, x, y)
        x = tuple(each[:4] for each in x) if isinstance(x, tuple) else x[:4]
    key = "choice" if name == "choices" else "label"

    def sureness(answer):
        shares = answer["probabilities"]
        return max(shares.values() if isinstance(shares, dict) else shares)

    answers = model.predict(x, verbose=0)
    least = float(np.median([sureness(each) for each in answers]))
    expected = [each[key] if sureness(each) >= least else None for each in answers]
    assert None in expected and set(expected) != {None}
    assert [each[key] for each in model.predict(x, abstain=least)] == expected
    assert [each[key] for each in model.predict(x)] == [each[key] for each in answers]
    model.export(tmp_path / "plain")
    model.export(tmp_path / "saved", abstain=least)
    model.export(tmp_path / "ids.tflite", format="litert", abstain=least)
    model.export(tmp_path / "strings.tflite", format="litert", inputs="strings", abstain=least)
    for path in ("saved", "ids.tflite", "strings.tflite"):
        other = bert_tf.load(tmp_path / path)
        assert [each[key] for each in other.predict(x)] == expected, path
        assert {*map(lambda each: each[key], other.predict(x, abstain=1.0))} <= {None, *expected}
        if path == "saved":
            said = refusal(other.predict, x, abstain=0.1)
            assert "export the model again with abstain=0.1" in said
    plain = bert_tf.load(tmp_path / "plain")
    assert [each[key] for each in plain.predict(x, abstain=least)] == expected
    columns = x if isinstance(x, tuple) else (x,)
    rows = [dict(zip(model.input_names, row, strict=True)) for row in zip(*columns, strict=True)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    nothing = -1 if key == "choice" else ""
    for path, options in (("plain", ["--abstain", str(least)]), ("saved", [])):
        given = [str(tmp_path / path), "--input", str(tmp_path / "rows.jsonl"), *options]
        assert main(["predict", *given]) == 0
        found = [json.loads(line)[key] for line in capsys.readouterr().out.splitlines()]
        assert found == [nothing if each is None else each for each in expected]


@pytest.mark.end_to_end
def test_options_of_one_call_on_the_command_line(tmp_path, capsys):
    make, x, y, _ = CASES["tags"]
    tagger = fitted(make, x, y)
    tagger.save(tmp_path / "tagger.keras")
    asked = [str(tmp_path / "tagger.keras"), "the cat the cat"]
    (entities,) = tagger.predict(asked[1:])
    least = max(each["score"] for each in entities)
    assert main(["predict", *asked, "--signature", "entities", "--min-score", str(least)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["scores"] == [pytest.approx(least)] * len(found["entities"])
    assert 0 < len(found["entities"]) <= len(entities)
    assert main(["predict", *asked, "--min-score", "0.5"]) == 2
    assert "signature entities" in capsys.readouterr().err
    assert main(["predict", *asked, "--top-k", "2"]) == 2
    assert "has no option top_k" in capsys.readouterr().err
    filler = tiny.filler()
    filler.save(tmp_path / "filler.keras")
    asked = [str(tmp_path / "filler.keras"), "the [MASK] sat"]
    assert main(["predict", *asked, "--top-k", "2"]) == 0
    assert np.shape(json.loads(capsys.readouterr().out)["tokens"]) == (1, 2)


def test_abstaining_is_refused_where_it_has_no_meaning(tmp_path):
    model = tiny.classifier(labels=["bad", "good"])
    assert refusal(model.predict, "cat", abstain=1.5) == "abstain must be at most 1, got 1.5"
    assert "give thresholds" in refusal(tiny.multi_labeller, abstain=0.5)
    regressor = tiny.regressor()
    assert "predict takes no abstain" in refusal(regressor.predict, "cat", abstain=0.5)
    assert "has no export option abstain" in refusal(regressor.export, tmp_path / "a", abstain=0.5)
    model.save(tmp_path / "model.keras")
    out = str(tmp_path / "saved")
    assert main(["export", str(tmp_path / "model.keras"), "--out", out, "--abstain", "0.9"]) == 0
    assert bert_tf.load(out).predict("cat")["label"] is None


@pytest.fixture
def few_samples(monkeypatch):
    monkeypatch.setattr(uncertainty, "RESAMPLES", 40)


OTHERS = {
    "answers": (tiny.answerer, (tiny.QUESTIONS, tiny.CONTEXTS), tiny.ANSWERS),
    "numbers": (tiny.regressor, tiny.TEXTS, [float(row % 4) for row in range(24)]),
    "scores": (tiny.embedder, (tiny.TEXTS, tiny.TEXTS[::-1]), [row / 24 for row in range(24)]),
    "relevance": (tiny.reranker, (tiny.TEXTS[:8], tiny.CHOICES), [[1, 0], [0, 1]] * 4),
    "spans": (
        tiny.tagger,
        ["the cat", "a dog ran"] * 4,
        [[{"start": 4, "end": 7, "label": "x"}], []] * 4,
    ),
}


@pytest.mark.end_to_end
@pytest.mark.parametrize("name", slow([*CASES, *OTHERS], "labels", "answers", "spans"))
def test_every_metric_has_an_interval(name, few_samples, caplog):
    make, x, y, *_ = (CASES | OTHERS)[name]
    model = make()
    if model.trains and y is not None:
        model.fit(x, y, verbose=0)
    caplog.clear()
    metrics = model.evaluate(x, y, verbose=0)
    said = caplog.text
    found = model.evaluate(x, y, confidence=0.9, verbose=0)
    names = [each for each in metrics if "threshold" not in each]
    ends = {f"{each}_{end}" for each in names for end in ("low", "high")}
    assert names and {*found} == {*metrics} | ends
    for each in names:
        low, high = found[f"{each}_low"], found[f"{each}_high"]
        assert low <= high and (low != low or min(low, high) <= metrics[each] + 0.5)
    assert caplog.text.count("labels that never occur") == 2 * said.count("labels that never occur")
    wider = model.evaluate(x, y, confidence=0.99, verbose=0)
    assert all(
        wider[f"{each}_low"] <= found[f"{each}_low"]
        for each in names
        if found[f"{each}_low"] == found[f"{each}_low"]
    )


def test_the_interval_of_an_accuracy_is_that_of_its_binomial():
    # 30 of 40 right: scipy.stats.binom(40, 0.75).ppf([0.025, 0.975]) / 40 (scipy 1.17.1).
    right = np.arange(40) < 30

    class Model:
        def resampled(self, predictions, rows, draw):
            return predictions[draw(len(rows))], rows

    def score(model, predictions, rows):
        return {"accuracy": predictions.mean()}

    samples = uncertainty.bootstrap(score, Model(), right, right)
    found = uncertainty.intervals(samples, 0.95)
    assert found["accuracy_low"] == pytest.approx(0.6, abs=0.026)
    assert found["accuracy_high"] == pytest.approx(0.875, abs=0.026)


def test_confidence_is_a_share_and_for_strings():
    model = tiny.classifier(labels=["bad", "good"])
    said = refusal(model.evaluate, tiny.TEXTS, tiny.LABELS, confidence=95)
    assert said == "confidence must be less than 1, got 95"
    ids = {"input_word_ids": np.ones((1, 3))}
    assert "confidence is for strings" in refusal(model.evaluate, ids, [1], confidence=0.9)
    assert "remove confidence" in refusal(tiny.filler().evaluate, tiny.TEXTS, confidence=0.9)
    searched = tiny.TEXTS[:4], tiny.TEXTS[1:5]
    assert "remove confidence" in refusal(tiny.embedder().evaluate, searched, confidence=0.9)
