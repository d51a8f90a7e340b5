"""Runs that answer questions: what they learn, write, find out and refuse."""

import json
from pathlib import Path

import pytest

from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.config.run import RunConfig
from bert_tf.errors import UserError
from bert_tf.tasks.question_answering.run import QuestionAnswering
from bert_tf.tasks.question_answering.squad import given_texts, read_squad
from tests import tiny_questions
from tests.tasks.tiny_tasks import examples_of, model_of

NAMES = {False: "dev-v1.1.json", True: "dev-v2.0.json"}


@pytest.fixture(
    scope="module", params=[pytest.param(False, marks=pytest.mark.slow), True], ids=["v1.1", "v2.0"]
)
def unanswerable(request) -> bool:
    return request.param


@pytest.fixture(scope="module")
def run(unanswerable, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    path = tiny_questions.write_finetuning(folder, unanswerable)
    config = load_config(path, ["model.num_hidden_layers=1"])
    runs.finetune(config, folder / "run")
    return folder / "run"


def predictions(run: Path, name: str) -> dict:
    return json.loads((run / "predictions" / f"{name}.json").read_text())


def metrics(run: Path) -> dict[str, float]:
    return json.loads((run / "metrics.json").read_text())


def task(config: RunConfig) -> QuestionAnswering:
    return QuestionAnswering(config)


def test_it_learns(run, unanswerable):
    assert metrics(run)["f1"] == metrics(run)["exact_match"] == 100
    if unanswerable:
        assert metrics(run)["NoAns_f1"] == metrics(run)["best_f1"] == 100


def test_predictions_are_in_the_official_form(run, unanswerable):
    given = given_texts(read_squad(run.parent / NAMES[unanswerable]))
    answers, n_best = predictions(run, "dev"), predictions(run, "dev_nbest")
    assert list(answers) == list(n_best) == list(given)
    for id, texts in given.items():
        # In version 1.1, the first of the n best is the answer.
        entries = n_best[id]
        assert entries[0].keys() == {"text", "probability", "start_logit", "end_logit"}
        assert sum(entry["probability"] for entry in entries) == pytest.approx(1)
        assert [entry["text"] for entry in entries].count("") == unanswerable
        assert answers[id] == (texts[0] if texts else "")
    if unanswerable:
        odds, best = predictions(run, "dev_null_odds"), predictions(run, "dev_best_answers")
        for name, answer in answers.items():
            assert answer == ("" if odds[name] > metrics(run)["null_threshold"] else best[name])
            assert best[name]


def test_evaluating_again_gives_the_same(run):
    before, written = metrics(run), predictions(run, "dev_nbest")
    assert runs.evaluate(run) == pytest.approx(before, rel=1e-4)
    after = predictions(run, "dev_nbest")
    assert [[e["text"] for e in entries][:1] for entries in after.values()] == [
        [e["text"] for e in entries][:1] for entries in written.values()
    ]


@pytest.mark.slow
def test_other_data_are_answered_by_the_threshold_of_the_dev_data(run, unanswerable, tmp_path):
    rows = tiny_questions.rows(9, 5, unanswerable)
    data = tiny_questions.write_squad(tmp_path / "other.json", rows)
    found = runs.evaluate(run, data)
    assert found.get("null_threshold") == metrics(run).get("null_threshold")
    assert found["f1"] > 80
    for row in rows:
        del row["qas"][0]["answers"]
        row["qas"][0].pop("is_impossible", None)
    untold = tiny_questions.write_squad(tmp_path / "untold.json", rows)
    assert runs.evaluate(run, untold) == {}
    assert predictions(run, "untold") == predictions(run, "other")
    for row in rows:
        row["qas"][0] |= {"answers": []} | ({"is_impossible": False} if unanswerable else {})
    empty = tiny_questions.write_squad(tmp_path / "empty.json", rows)
    assert runs.evaluate(run, empty) == {}
    assert predictions(run, "empty") == predictions(run, "other")


def test_the_official_scripts_score_the_written_files_as_we_do(run, unanswerable, tmp_path):
    rows = tiny_questions.rows(30, 6, unanswerable)
    for number, row in enumerate(rows[::2]):
        # Half of the answers become right in part, or wrong.
        (question,) = row["qas"]
        text = f"{question['answers'][0]['text']} x" if question["answers"] else "x"
        question["answers"] = [{"text": text if number % 2 else "x", "answer_start": 0}]
        if unanswerable:
            question["is_impossible"] = False
    found = runs.evaluate(run, tiny_questions.write_squad(tmp_path / "hard.json", rows))
    articles = json.loads((tmp_path / "hard.json").read_text())["data"]
    answers = predictions(run, "hard")
    assert 0 < found["exact_match"] < found["f1"] < 100
    if not unanswerable:
        script = pytest.importorskip("official.nlp.tools.squad_evaluate_v1_1")
        scores = script.evaluate(articles, answers)
        assert found == {
            "exact_match": pytest.approx(100 * scores["exact_match"]),
            "f1": pytest.approx(100 * scores["final_f1"]),
        }
        return
    script = pytest.importorskip("official.nlp.tools.squad_evaluate_v2_0")
    scores = script.evaluate(articles, answers)
    assert found["exact_match"] == pytest.approx(scores["exact"])
    for name in ("f1", "HasAns_exact", "HasAns_f1", "NoAns_exact", "NoAns_f1"):
        assert found[name] == pytest.approx(scores[name])
    best, odds = predictions(run, "hard_best_answers"), predictions(run, "hard_null_odds")
    scores = script.evaluate(articles, best, odds)
    for name in ("exact", "exact_thresh", "f1", "f1_thresh"):
        assert found[f"best_{name}"] == pytest.approx(scores[f"final_{name}"])


def config(folder: Path, *settings: str, unanswerable: bool = False) -> RunConfig:
    return load_config(tiny_questions.write_finetuning(folder, unanswerable), settings)


def test_a_threshold_that_is_configured_is_used(tmp_path):
    made = task(config(tmp_path, "data.null_threshold=2.5", unanswerable=True))
    model = model_of(made)
    model.remember({"null_threshold": 7.0})
    assert model.null_threshold == 2.5
    assert model.infer(made.read(tmp_path / "dev-v2.0.json")).null_threshold == 2.5


@pytest.mark.slow
def test_more_files_are_trained_on_and_rows_of_the_first_counted(tmp_path):
    more = tiny_questions.write_squad(tmp_path / "more.json", tiny_questions.rows(20, 4))
    alone = examples_of(task(config(tmp_path, "data.train_rows=10")))
    settings = ["data.train_rows=10", f"data.extra_train=[{more}]"]
    both = examples_of(task(config(tmp_path, *settings)))
    assert len(both.lengths) >= len(alone.lengths) + 20
    assert both.lengths[: len(alone.lengths)].tolist() == alone.lengths.tolist()


@pytest.mark.slow
def test_answers_that_are_not_at_their_offset_are_counted_and_left_out(tmp_path, capsys):
    loaded = config(tmp_path)
    rows = tiny_questions.rows(12, 1)
    for row in rows[3:5]:
        row["qas"][0]["answers"][0]["answer_start"] += 1
    path = tiny_questions.write_squad(tmp_path / "train-v1.1.json", rows)
    examples = examples_of(task(loaded))
    skipped = "questions skipped because no answer is in the context at its offset, or exactly once"
    skipped += " in the context: 2 of 12, the first 1-3"
    assert f"warning: {path}: {skipped}" in " ".join(capsys.readouterr().err.split())
    tiny_questions.write_squad(path, rows[:3] + rows[5:])
    assert examples_of(task(loaded)).lengths.tolist() == examples.lengths.tolist()
    tiny_questions.write_squad(path, rows[3:5])
    with pytest.raises(UserError, match="none of 2 answers is in the context at its offset"):
        examples_of(task(loaded))


def test_data_of_tfds_go_by_name_and_split(tmp_path, monkeypatch):
    questions = read_squad(tmp_path / config(tmp_path).data.path / "dev-v1.1.json")
    asked = []

    def read_tfds(name, split):
        asked.append((name, split))
        return questions

    monkeypatch.setattr("bert_tf.tasks.question_answering.run.read_tfds", read_tfds)
    made = task(config(tmp_path, "data.format=tfds", "data.path=squad/v1.1"))
    assert len(examples_of(made).lengths) >= len(questions)
    assert made.read(made.files("dev")[""]) == questions
    assert asked == [("squad/v1.1", "train"), ("squad/v1.1", "validation")]
    assert made.read(tmp_path / "dev-v1.1.json") == questions  # a file goes before TFDS


def test_a_question_that_has_neither_an_answer_nor_none_is_named(tmp_path):
    made = task(config(tmp_path, unanswerable=True))
    rows = tiny_questions.rows(6, 1, unanswerable=True)
    rows[2]["qas"][0]["is_impossible"] = False
    for name in ("train-v2.0.json", "other.json"):
        path = tiny_questions.write_squad(tmp_path / name, rows)
        message = f"{path}: question 1-2 has no answers; write them, or is_impossible: true if the"
        with pytest.raises(UserError, match=message):
            made.read(path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ["data.format=csv"],
            "unknown data.format 'csv'; choose one of squad, parquet, datasets, tfds",
        ),
        (["data.dev=nowhere.json"], "not found: .*nowhere.json"),
        (["data.max_question_length=21"], "max_length is 24, too short for questions of 21"),
        (["data.extra_train=[untold.json]"], "untold.json: question 7-0 has no answers; write"),
        (["data.train=none.json"], "question 8-2 has no answer; set data.unanswerable: true"),
    ],
)
def test_mistakes_are_named(tmp_path, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    path = tiny_questions.write_finetuning(tmp_path)
    untold = tiny_questions.rows(1, 7)
    del untold[0]["qas"][0]["answers"]
    tiny_questions.write_squad(tmp_path / "untold.json", untold)
    tiny_questions.write_squad(tmp_path / "none.json", tiny_questions.rows(3, 8, unanswerable=True))
    with pytest.raises(UserError, match=message):
        runs.finetune(load_config(path, settings), tmp_path / "run")
