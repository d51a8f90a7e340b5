"""Answers of several runs are put together by their probabilities."""

import json

import pytest

from bert_tf.errors import UserError
from bert_tf.experiments import squad_ensemble
from bert_tf.experiments.squad_ensemble import combine
from tests import tiny_questions


def write_run(folder, name: str, n_best: dict[str, dict[str, float]], odds=None):
    """A run folder with n best answers: id -> text -> probability."""
    run = folder / name
    (run / "predictions").mkdir(parents=True)
    entries = {
        each: [{"text": text, "probability": p} for text, p in texts.items()]
        for each, texts in n_best.items()
    }
    (run / "predictions" / "dev_nbest.json").write_text(json.dumps(entries))
    if odds:
        (run / "predictions" / "dev_null_odds.json").write_text(json.dumps(odds))
    return run


@pytest.fixture
def always(tmp_path):
    """Three runs of version 1.1."""
    return [
        write_run(tmp_path, "a", {"0": {"sea": 0.6, "log": 0.4}, "1": {"mat": 1.0}}),
        write_run(tmp_path, "b", {"0": {"log": 0.5, "tree": 0.5}, "1": {"sea": 0.9, "mat": 0.1}}),
        write_run(tmp_path, "c", {"0": {"tree": 0.9}, "1": {"sea": 0.3}}),
    ]


def test_the_answer_is_the_one_of_the_highest_mean_probability(always, tmp_path):
    out = tmp_path / "answers.json"
    assert combine(always, out) == {}
    assert json.loads(out.read_text()) == {"0": "tree", "1": "sea"}
    assert combine(always[:1], out) == {}
    assert json.loads(out.read_text()) == {"0": "sea", "1": "mat"}
    combine(always[:2], out)
    assert json.loads(out.read_text()) == {"0": "log", "1": "mat"}


def test_the_command_scores_the_answers(always, tmp_path, capsys):
    rows = [
        {"context": "sea", "qas": [{"id": each, "question": "?", "answers": []}]} for each in "01"
    ]
    for row, text in zip(rows, ("tree", "the sea tree"), strict=True):
        row["qas"][0]["answers"] = [{"text": text, "answer_start": 0}]
    data = tiny_questions.write_squad(tmp_path / "dev.json", rows)
    out = tmp_path / "answers.json"
    arguments = [*map(str, always), "--data", str(data), "--out", str(out)]
    assert squad_ensemble.main(arguments) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics == pytest.approx({"exact_match": 50, "f1": 100 * (1 + 2 / 3) / 2})
    assert json.loads((tmp_path / "answers.metrics.json").read_text()) == metrics
    # Answers without a score remove the metrics of earlier ones.
    combine(always, out)
    assert not (tmp_path / "answers.metrics.json").exists()


def test_the_mean_of_the_odds_decides_whether_there_is_an_answer(tmp_path):
    n_best = {"0": {"": 0.6, "sea": 0.4}, "1": {"log": 0.9, "": 0.1}}
    runs = [
        write_run(tmp_path, "a", n_best, {"0": 3.0, "1": -2.0}),
        write_run(tmp_path, "b", n_best, {"0": -1.0, "1": 0.0}),
    ]
    out = tmp_path / "answers.json"
    combine(runs, out, null_threshold=0.5)
    assert json.loads(out.read_text()) == {"0": "", "1": "log"}
    combine(runs, out, null_threshold=1.5)
    assert json.loads(out.read_text()) == {"0": "sea", "1": "log"}
    rows = [
        {"context": "log", "qas": [{"id": each, "question": "?", "answers": []}]} for each in "01"
    ]
    rows[1]["qas"][0]["answers"] = [{"text": "log", "answer_start": 0}]
    metrics = combine(runs, out, data=tiny_questions.write_squad(tmp_path / "dev.json", rows))
    assert metrics["f1"] == metrics["best_f1"] == 100
    assert metrics["null_threshold"] == 0.0  # halfway between the means, -1 and 1
    with pytest.raises(UserError, match="set --data or --null-threshold"):
        combine(runs, out)


def test_runs_that_do_not_belong_together_are_refused(always, tmp_path):
    out = tmp_path / "answers.json"
    other = write_run(tmp_path, "other", {"0": {"sea": 1.0}})
    with pytest.raises(UserError, match="answer different questions"):
        combine([*always, other], out)
    odds = write_run(tmp_path, "odds", {"0": {"sea": 1.0}, "1": {"sea": 1.0}}, {"0": 1, "1": 1})
    with pytest.raises(
        UserError, match="odds may leave a question unanswered, but .*a may not; combine runs"
    ):
        combine([*always, odds], out)
    with pytest.raises(UserError, match="answer every question; remove --null-threshold"):
        combine(always, out, null_threshold=1.0)
    with pytest.raises(UserError, match="no predictions/test_nbest.json; make it with bert-tf eva"):
        combine(always, out, name="test")
    data = tiny_questions.write_squad(tmp_path / "dev.json", tiny_questions.rows(3, 0))
    with pytest.raises(
        UserError, match="dev.json and the predictions dev .* have different questions"
    ):
        combine(always, out, data=data)
    untold = [{"context": "sea", "qas": [{"id": each, "question": "?"} for each in "01"]}]
    data = tiny_questions.write_squad(tmp_path / "test.json", untold)
    with pytest.raises(UserError, match="test.json contains no answers; remove --data"):
        combine(always, out, data=data)
    assert not out.exists()
