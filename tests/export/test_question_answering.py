"""The exported model answers as evaluation does, cuts from the context, and never crashes."""

import json
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import QuestionAnswerer, runs
from bert_tf.config.reading import load_config
from bert_tf.export.run import export_run
from bert_tf.export.served_model import ServedModel
from bert_tf.export.service import traced
from bert_tf.tasks.question_answering.squad import read_squad
from tests import tiny_questions
from tests.export import odd_texts
from tests.export.conftest import WINDOWS

OUTPUTS = {"answer", "start", "end", "score", "null_score", "nbest_answers", "nbest_scores"}


@pytest.fixture(scope="module", params=[False, True], ids=["v1.1", "v2.0"])
def unanswerable(request) -> bool:
    return request.param


@pytest.fixture(scope="module")
def served(models, loaded, unanswerable) -> Callable[[dict], dict]:
    """The export's `serving_default`, and that of a model which may give no answer."""
    if unanswerable:
        model = models("question_answering")
        settings = WINDOWS | {"n_best": 5, "unanswerable": True}
        model = QuestionAnswerer(model.encoder, model.tokenizer, **settings)
        answer = traced(model.with_network(ServedModel(model)).signatures()["serving_default"])
    else:
        answer = loaded("question_answering").signatures["serving_default"]
    return lambda given: answer(**given)


def ask(served, questions, contexts) -> dict[str, np.ndarray]:
    """The answers, after checking that offsets cut them out and padding is as it should be."""
    shape = [len(contexts)]
    given = {"question": questions, "context": contexts}
    found = served({name: tf.constant(each, tf.string, shape) for name, each in given.items()})
    assert set(found) == OUTPUTS
    answers = {name: value.numpy() for name, value in found.items()}
    names = ("answer", "start", "end", "score", "nbest_answers", "nbest_scores")
    for context, *row in zip(contexts, *(answers[name] for name in names), strict=True):
        text = context if isinstance(context, bytes) else context.encode()
        answer, start, end, score, nbest, scores = row
        if start < 0:
            assert (answer, start, end) == (b"", -1, -1)
        else:
            assert text[start:end] == answer != b""
            assert answer in nbest and score in scores
        assert (np.diff(scores) <= 0).all() and np.count_nonzero(scores[nbest == b""]) <= 1
        assert all(each in text for each in nbest)
    return answers


@pytest.mark.slow
def test_the_export_of_a_run_answers_as_its_evaluation(tmp_path):
    path = tiny_questions.write_finetuning(tmp_path, unanswerable=True)
    settings = ["train.epochs=0.5", "train.learning_rate=0.004"]
    metrics = runs.finetune(load_config(path, settings), tmp_path / "run")
    export_run(tmp_path / "run", tmp_path / "saved")
    questions = read_squad(tmp_path / "dev-v2.0.json")
    answers = ask(
        bert_tf.load(tmp_path / "saved").serve,
        [each.question for each in questions],
        [each.context for each in questions],
    )
    predictions = tmp_path / "run" / "predictions"
    expected = json.loads((predictions / "dev.json").read_text())
    assert metrics["null_threshold"] != 0
    assert len({*expected.values()}) > 2 and "" in expected.values()
    assert [each.decode() for each in answers["answer"]] == [*expected.values()]
    n_best = json.loads((predictions / "dev_nbest.json").read_text())
    for row, entries in enumerate(n_best.values()):
        scores = [entry["probability"] for entry in entries]
        np.testing.assert_allclose(answers["nbest_scores"][row, : len(scores)], scores, atol=1e-5)


@pytest.mark.end_to_end
def test_answers_do_not_depend_on_the_rest_of_the_batch(served):
    rows = tiny_questions.rows(12, 6)
    questions = [row["qas"][0]["question"] for row in rows]
    contexts = [row["context"] for row in rows]
    together = ask(served, questions, contexts)
    for row in (0, 5):
        alone = ask(served, questions[row : row + 1], contexts[row : row + 1])
        assert alone["answer"] == together["answer"][row]
        np.testing.assert_allclose(
            alone["nbest_scores"][0], together["nbest_scores"][row], atol=1e-5
        )


def test_no_input_is_too_odd(served):
    longest = ["x" * 100_000, "中" * 20_000, "cat sat " * 20_000, "." * 50_000, "cat"]
    contexts = [*odd_texts.HARD, *longest]
    questions = [*odd_texts.HARD[::-1], *["cat"] * 4, "cat " * 5000]
    assert np.isfinite(ask(served, questions, contexts)["null_score"]).all()


def test_an_empty_batch_has_empty_answers(served, unanswerable):
    answers = ask(served, [], [])
    assert answers["answer"].shape == (0,)
    assert answers["nbest_scores"].shape == (0, 6 if unanswerable else 5)


def test_where_there_must_be_an_answer_there_is_one(served, unanswerable):
    answers = ask(served, ["cat"] * 3, ["", "dog", "the cat sat"])
    assert answers["answer"][0] == b"" and answers["score"][0] == unanswerable
    if not unanswerable:
        assert answers["answer"][1] == b"dog" and answers["score"][1] == 1
        assert answers["answer"][2] != b""
