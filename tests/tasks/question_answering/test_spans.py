"""Answers from logits: those of google-research/bert, and always parts of the context."""

import functools
import json
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from bert_tf.errors import UserError
from bert_tf.tasks.question_answering.spans import SpanAnswers, SpanRules, decode
from bert_tf.text import Tokenizer, WindowPreprocessor
from tests import tiny

GOOGLE = json.loads((Path(__file__).parents[2] / "fixtures" / "google_answers.json").read_text())


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return tiny.tokenizer()


def decoded(windows, contexts, logits, **rules) -> SpanAnswers:
    """The answers as NumPy arrays, computed in a graph."""
    start, end = (tf.constant(each, tf.float32) for each in logits)
    answers = decoder(SpanRules(**rules))(start, end, windows, tf.constant(contexts, tf.string))
    return SpanAnswers(*(each.numpy() for each in answers))


@functools.cache
def decoder(rules: SpanRules):
    return tf.function(lambda *inputs: decode(*inputs, rules), reduce_retracing=True)


@pytest.fixture(scope="module")
def google(tokenizer):
    """Windows, contexts and logits of the fixture."""
    preprocess = WindowPreprocessor(tokenizer, **GOOGLE["settings"])
    contexts = [each["context"] for each in GOOGLE["questions"]]
    windows = preprocess(([each["question"] for each in GOOGLE["questions"]], contexts))
    return windows, contexts, (np.array(GOOGLE["tenths_of_logits"]) / 10).astype(np.float32)


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_answers_are_the_references(google, version):
    """Figures by google-research/bert's write_predictions; see fixtures/make_google_answers.py."""
    unanswerable = version == "2.0"
    answers = decoded(*google, **GOOGLE["rules"], unanswerable=unanswerable)
    expected = GOOGLE["answers"][version]
    assert [each.decode() for each in answers.answer] == [*expected["answers"].values()]
    for row, entries in enumerate(expected["n_best"].values()):
        texts = [entry["text"] for entry in entries]
        count = len(texts)
        assert [text.decode() for text in answers.nbest_answers[row, :count]] == texts
        for field, key in (
            (answers.nbest_scores, "probability"),
            (answers.nbest_start_logits, "start_logit"),
            (answers.nbest_end_logits, "end_logit"),
        ):
            np.testing.assert_allclose(field[row, :count], [e[key] for e in entries], rtol=1e-6)
            assert not field[row, count:].any()
        assert not any(answers.nbest_answers[row, count:])
        place = texts.index(answers.answer[row].decode())
        assert answers.score[row] == answers.nbest_scores[row, place]
    if unanswerable:
        odds = [*expected["null_odds"].values()]
        np.testing.assert_allclose(answers.null_odds, odds, rtol=1e-6)
        assert 0 < sum(text == b"" for text in answers.answer) < len(answers.answer)


def test_the_threshold_decides_whether_there_is_an_answer(google):
    rules = GOOGLE["rules"] | {"unanswerable": True}
    answers = decoded(*google, **rules)
    for threshold in (-1e9, float(np.median(answers.null_odds)), 1e9):
        now = decoded(*google, **rules, null_threshold=threshold)
        is_none = answers.null_odds > np.float32(threshold)
        np.testing.assert_array_equal(now.answer == b"", is_none)
        np.testing.assert_array_equal(now.start == -1, is_none)
        np.testing.assert_array_equal(now.best_answer, answers.best_answer)
        np.testing.assert_array_equal(now.answer[~is_none], answers.best_answer[~is_none])


def test_no_answer_stays_among_very_few_best(google):
    """With n_best 1, "no answer" may be first, and the best answer is listed too."""
    answers = decoded(*google, n_best=1, max_answer_length=5, unanswerable=True)
    assert answers.nbest_answers.shape[1] == 2
    for row, best in enumerate(answers.best_answer):
        assert set(answers.nbest_answers[row]) == {best, b""}


def test_the_best_token_answers_where_no_pair_of_the_best_fits(tokenizer):
    """In this example the best start comes after the best end."""
    windows = WindowPreprocessor(tokenizer, 12, 8, 2)((["cat"], ["bird sat on sea"]))
    start, end = np.zeros((2, 1, 12))
    start[0, 6], end[0, 3], end[0, 5] = 5, 5, 3
    answers = decoded(windows, ["bird sat on sea"], (start, end), n_best=1)
    assert answers.answer.tolist() == [b"bird"]
    assert (answers.start, answers.end, answers.score) == (0, 4, 1)


@pytest.mark.parametrize("rules", [{"n_best": 0}, {"max_answer_length": 0}])
def test_rules_by_which_there_is_no_answer_are_refused(rules):
    with pytest.raises(UserError, match="(n_best|max_answer_length) must be at least 1"):
        SpanRules(**rules)


def test_of_equal_scores_the_earlier_window_and_start_win(tokenizer):
    context = "bird sat on sea . cat ran on log . fish swam"
    windows = WindowPreprocessor(tokenizer, 8, 3, 1)((["cat"], [context]))
    same = np.zeros((2, *windows.pieces.shape))
    answers = decoded(windows, [context], same, max_answer_length=2)
    assert answers.answer.tolist() == [b"bird"]
    assert answers.nbest_answers[0, :3].tolist() == [b"bird", b"bird sat", b"sat"]
    assert len({*answers.nbest_scores[0, :18]}) == 1


def test_contexts_without_tokens_have_no_answer(tokenizer):
    contexts = ["", " \t", "\N{ZERO WIDTH JOINER}", "cat"]
    windows = WindowPreprocessor(tokenizer, 12, 8, 2)((["cat"] * 4, contexts))
    for unanswerable in (False, True):
        logits = np.zeros((2, 4, 12))
        answers = decoded(windows, contexts, logits, unanswerable=unanswerable, null_threshold=1)
        assert answers.answer.tolist() == [b"", b"", b"", b"cat"]
        assert answers.start.tolist() == [-1, -1, -1, 0]
        assert answers.end.tolist() == [-1, -1, -1, 3]
        assert answers.score[:3].tolist() == [float(unanswerable)] * 3
        assert np.isfinite(answers.null_odds).all()


_BYTES = [*"abcat é🎉\u0301\u200d\0\n.מ中", b"\xc3", b"\x80", b"\xf0\x9f", b"\xff"]
_BYTES = [each if isinstance(each, bytes) else each.encode() for each in _BYTES]


@pytest.fixture(scope="module")
def answer_at_random(tokenizer):
    """Contexts and a seed -> answers by logits drawn from the seed."""
    preprocess = WindowPreprocessor(tokenizer, 12, 4, 3)
    rules = SpanRules(n_best=4, max_answer_length=6, unanswerable=True)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int32)])
    def answer(contexts, seed):
        windows = preprocess((contexts, contexts))
        logits = tf.random.stateless_normal([2, tf.size(windows.rows), 12], [seed, 0])
        return decode(logits[0], logits[1], windows, contexts, rules)

    return answer


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(
    contexts=st.lists(st.lists(st.sampled_from(_BYTES), max_size=40).map(b"".join), max_size=4),
    seed=st.integers(0, 99),
)
def test_answers_are_cut_out_of_any_context(answer_at_random, contexts, seed):
    found = answer_at_random(tf.constant(contexts, tf.string, [len(contexts)]), seed)
    answers = SpanAnswers(*(each.numpy() for each in found))
    assert len(answers.answer) == len(contexts)
    for context, answer, start, end in zip(contexts, *answers[:3], strict=True):
        if start >= 0:
            assert context[start:end] == answer != b""
        else:
            assert (start, end, answer) == (-1, -1, b"")
    np.testing.assert_allclose(answers.nbest_scores.sum(axis=1), 1, rtol=1e-5)
