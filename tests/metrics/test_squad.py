"""Exact match and F1 under SQuAD's own rules, and the threshold for no answer."""

import random

import pytest

from bert_tf.data.squad import Answer, Question
from bert_tf.metrics.squad import answer_metrics, answer_or_none_metrics, best_null_threshold


def questions(*answers: list[str]) -> list[Question]:
    return [
        Question(str(i), "?", "", tuple(Answer(text, 0) for text in texts))
        for i, texts in enumerate(answers)
    ]


def test_the_official_rules_hold():
    """Articles, case, punctuation and spaces do not count; of several answers the best does."""
    asked = questions(["the cat sat", "dog"], ["Łódź"], ["a b c d"])
    metrics = answer_metrics(asked, {"0": "Cat,  SAT!", "1": "Lodz", "2": "b c x"})
    # The third: of "b c d" and "b c x", two words each of three.
    assert metrics == pytest.approx({"exact_match": 100 / 3, "f1": 100 * (1 + 2 / 3) / 3})


def test_no_answer_is_right_where_there_is_none():
    asked = questions(["cat"], [], [], ["sea"])
    best = {"0": "cat", "1": "x", "2": "y", "3": "the tree"}
    odds = {"0": -3.0, "1": -2.0, "2": 1.0, "3": 4.0}
    metrics = answer_or_none_metrics(asked, best | {"2": "", "3": ""}, best, odds)
    assert metrics["exact_match"] == metrics["f1"] == 50
    assert metrics["HasAns_exact"] == metrics["HasAns_f1"] == 50
    assert metrics["NoAns_exact"] == metrics["NoAns_f1"] == 50
    # Three are right if only the first is answered.
    assert metrics["best_exact"] == metrics["best_f1"] == 75
    assert metrics["best_exact_thresh"] == metrics["best_f1_thresh"] == -3
    assert best_null_threshold(asked, best, odds) == -2.5


def test_questions_that_all_have_an_answer_have_no_metrics_of_the_others():
    metrics = answer_or_none_metrics(questions(["cat"]), {"0": ""}, {"0": "cat"}, {"0": -1.0})
    assert "NoAns_f1" not in metrics
    assert metrics["best_f1"] == 100
    assert best_null_threshold(questions(["cat"]), {"0": "cat"}, {"0": -1.0}) == 0


@pytest.mark.parametrize("seed", range(20))
def test_answering_by_the_threshold_gives_the_best_f1(seed):
    source = random.Random(seed)
    words = ["cat", "dog", "cat dog", "sea"]
    asked = questions(*(source.choice([[], [source.choice(words)]]) for _ in range(12)))
    best = {each.id: source.choice(words) for each in asked}
    # The lower the odds, the likelier right; with some seeds it is best to answer nothing.
    odds = {each.id: source.gauss(-1 if each.answers else 1, 2) for each in asked}
    threshold = best_null_threshold(asked, best, odds)
    answers = {name: "" if odds[name] > threshold else best[name] for name in best}
    metrics = answer_or_none_metrics(asked, answers, best, odds)
    assert metrics["f1"] == pytest.approx(metrics["best_f1"])
    assert min(abs(value - threshold) for value in odds.values()) > 1e-9
