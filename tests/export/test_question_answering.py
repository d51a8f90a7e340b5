"""The exported model answers as evaluation does, cuts from the context, and never crashes."""

import json
import random
import subprocess
import sys
from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401

from bert_tf import QuestionAnswerer, runs
from bert_tf.config.reading import load_config
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.run import export_run
from bert_tf.tasks.question_answering.squad import read_squad
from bert_tf.text import Tokenizer
from tests import tiny, tiny_questions

OUTPUTS = {"answer", "start", "end", "score", "null_score", "nbest_answers", "nbest_scores"}
SETTINGS = {"max_length": 24, "stride": 8, "max_question_length": 4}


@pytest.fixture(scope="module")
def make() -> Callable[..., QuestionAnswerer]:
    """Makes the model with settings; its weights are always the same."""

    def made(**settings) -> QuestionAnswerer:
        keras.utils.set_random_seed(1)
        encoder = Encoder(tiny.encoder_config(initializer_range=0.8))
        return QuestionAnswerer(encoder, Tokenizer(tiny.VOCABULARY), **SETTINGS | settings)

    return made


@pytest.fixture(scope="module", params=[False, True], ids=["v1.1", "v2.0"])
def unanswerable(request) -> bool:
    return request.param


@pytest.fixture(scope="module")
def saved(make, unanswerable, tmp_path_factory):
    out = tmp_path_factory.mktemp("export") / "answerer"
    make(n_best=5, unanswerable=unanswerable).export(out)
    return out


@pytest.fixture(scope="module")
def loaded(saved):
    return tf.saved_model.load(saved)


def ask(loaded, questions, contexts) -> dict[str, np.ndarray]:
    """The answers, after checking that offsets cut them out and padding is as it should be."""
    shape = [len(contexts)]
    found = loaded.signatures["serving_default"](
        question=tf.constant(questions, tf.string, shape),
        context=tf.constant(contexts, tf.string, shape),
    )
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
        tf.saved_model.load(tmp_path / "saved"),
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


def test_answers_do_not_depend_on_the_rest_of_the_batch(loaded):
    rows = tiny_questions.rows(12, 6)
    questions = [row["qas"][0]["question"] for row in rows]
    contexts = [row["context"] for row in rows]
    together = ask(loaded, questions, contexts)
    for row in (0, 5):
        alone = ask(loaded, questions[row : row + 1], contexts[row : row + 1])
        assert alone["answer"] == together["answer"][row]
        np.testing.assert_allclose(
            alone["nbest_scores"][0], together["nbest_scores"][row], atol=1e-5
        )
    both = {"question": tf.constant(questions), "context": tf.constant(contexts)}
    np.testing.assert_array_equal(loaded.serve(both)["answer"], together["answer"])


@pytest.mark.parametrize(
    ("question", "context"),
    [
        ("", "the cat sat"),
        ("cat", ""),
        ("", ""),
        ("cat", " \n\t"),
        ("cat", "\0\0"),
        ("cat", "\N{ZERO WIDTH JOINER}"),
        ("cat " * 5000, "the cat sat on the mat"),
        ("c\0at", "the\0 cat sat\0"),
        ("😂", "👩\u200d🔬 😂 \U0001f3fd cat"),
        ("אב", "\u202eאבג cat דה"),
        ("مرحبا", "مرحبا cat بك"),
        (b"\xff\xfe", b"cat \xc3 \x80 \xf0\x9f dog \xff"),
        ("cat", "x" * 100_000),
        ("cat", "中" * 20_000),
        ("cat", "cat sat " * 20_000),
        ("cat", "." * 50_000),
    ],
    ids=range(16),
)
def test_no_input_is_too_odd(loaded, question, context):
    answers = ask(loaded, [question, "cat"], [context, "the cat sat"])
    assert answers["answer"].shape == (2,)
    assert np.isfinite(answers["null_score"]).all()


def test_an_empty_batch_has_empty_answers(loaded, unanswerable):
    answers = ask(loaded, [], [])
    assert answers["answer"].shape == (0,)
    assert answers["nbest_scores"].shape == (0, 6 if unanswerable else 5)


def test_where_there_must_be_an_answer_there_is_one(loaded, unanswerable):
    answers = ask(loaded, ["cat"] * 3, ["", "dog", "the cat sat"])
    assert answers["answer"][0] == b"" and answers["score"][0] == unanswerable
    if not unanswerable:
        assert answers["answer"][1] == b"dog" and answers["score"][1] == 1
        assert answers["answer"][2] != b""


@pytest.mark.slow
def test_the_threshold_is_a_setting(make, tmp_path):
    make(unanswerable=True, null_threshold=-1e6).export(tmp_path / "saved")
    answers = ask(
        tf.saved_model.load(tmp_path / "saved"), ["cat"] * 3, ["dog", "the cat sat", "on a mat"]
    )
    assert answers["answer"].tolist() == [b""] * 3


def test_a_window_without_room_is_refused(make):
    with pytest.raises(UserError, match="max_length is 32, too short for questions of 64"):
        make(max_length=32, max_question_length=64)


def test_a_thousand_questions_are_answered_at_once(loaded):
    rows = tiny_questions.rows(1000, 7)
    questions = [row["qas"][0]["question"] for row in rows]
    answers = ask(loaded, questions, [row["context"] for row in rows])
    assert len(answers["answer"]) == 1000


# Loads the model, asks about a megabyte, and prints by how much memory grew, in MiB.
_MEGABYTE = """
import sys
import tensorflow as tf, tensorflow_text
from benchmarks.memory import peak_bytes
answer = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
question = tf.constant(["cat"])
answer(question=question, context=tf.constant(["a cat"]))
before = peak_bytes()
context = sys.argv[2] * (2**20 // len(sys.argv[2].encode()))
found = answer(question=question, context=tf.constant([context]))
print(len(found["answer"][0].numpy()))
print((peak_bytes() - before) >> 20)
"""


@pytest.mark.slow
@pytest.mark.parametrize("part", ["!", "a cat ", "中", "x"])
def test_a_megabyte_takes_bounded_memory(make, tmp_path, part):
    out = tmp_path / "saved"
    make(n_best=20).export(out)
    done = subprocess.run(
        [sys.executable, "-c", _MEGABYTE, out, part], capture_output=True, text=True, check=True
    )
    answer, grown = map(int, done.stdout.split())
    assert answer > 0
    assert grown < 2048


@pytest.mark.slow
def test_ten_thousand_random_inputs_are_answered(loaded):
    source = random.Random(0)
    characters = [*map(chr, range(1, 0x250)), *"中한\u0301\u05d0\u202e\u200d😂👩\ufeff\U0001f3fd\0"]
    characters += [*tiny.WORDS, " ", " ", " ", "."]

    def text(longest: int) -> bytes:
        if source.random() < 0.7:
            return "".join(source.choices(characters, k=source.randint(0, longest))).encode()
        return bytes(source.choices(range(256), k=source.randint(0, longest)))

    for _ in range(100):
        ask(loaded, [text(20) for _ in range(100)], [text(120) for _ in range(100)])
