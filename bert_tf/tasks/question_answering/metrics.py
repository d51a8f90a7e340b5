"""Exact match and F1 of answers, as SQuAD's official scripts define them.

All in percent, as the scripts print them. Sources: evaluate-v1.1.py and evaluate-v2.0.py, whose
definitions are frozen. The tests compare with the copies of both in tf-models-official.
"""

import re
import string
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

# The texts of the answers that are given to each question, by its id; none if it has no answer.
Given = Mapping[str, Sequence[str]]
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalized(answer: str) -> str:
    """The form in which answers are compared: lower case, no ASCII punctuation, no articles."""
    return " ".join(_ARTICLE.sub(" ", answer.lower().translate(_WITHOUT_PUNCTUATION)).split())


def answer_metrics(given: Given, answers: Mapping[str, str]) -> dict[str, float]:
    """`exact_match` and `f1` as in version 1.1; a question that is not in `answers` scores 0."""
    exact = f1 = 0.0
    for id, texts in given.items():
        if id in answers:
            exact += max(_exact(answers[id], text) for text in texts)
            f1 += max(_f1(answers[id], text) for text in texts)
    return {"exact_match": 100 * (exact / len(given)), "f1": 100 * (f1 / len(given))}


def answer_or_none_metrics(
    given: Given,
    answers: Mapping[str, str],
    best_answers: Mapping[str, str],
    null_odds: Mapping[str, float],
) -> dict[str, float]:
    """Metrics of version 2.0, under the official script's names (`exact_match` is its `exact`).

    "" says that there is no answer; questions that are not in `answers` do not count.
    `best_answers` are the answers before "no answer" replaces some of them, and `null_odds` the
    score of "no answer" minus the score of the best answer.
    """
    scores = _scores(given, answers)
    exact, f1 = _mean(scores.values())
    metrics = {"exact_match": exact, "f1": f1}
    for group, has_answer in (("HasAns", True), ("NoAns", False)):
        of_group = [scores[id] for id in given if id in scores and bool(given[id]) is has_answer]
        if of_group:
            exact, f1 = _mean(of_group)
            metrics |= {f"{group}_exact": exact, f"{group}_f1": f1}
    best = _scores(given, best_answers)
    unanswerable = {id for id in given if id in best and not given[id]}
    for name in _Score._fields:
        of_answers = {id: getattr(score, name) for id, score in best.items()}
        value, threshold = _best_threshold(of_answers, best_answers, null_odds, unanswerable)
        metrics |= {f"best_{name}": value, f"best_{name}_thresh": threshold}
    return metrics


def best_null_threshold(
    given: Given, best_answers: Mapping[str, str], null_odds: Mapping[str, float]
) -> float:
    """The odds above which "no answer" is given, so that F1 is `best_f1`. The official script
    prints the odds of the last question that is answered. This is the middle between these odds and
    the next, so that rounding cannot turn the answer to that question into "no answer".
    """
    metrics = answer_or_none_metrics(given, best_answers, best_answers, null_odds)
    unanswerable = sum(not texts for texts in given.values())
    odds = sorted(null_odds.values())
    if metrics["best_f1"] == 100.0 * unanswerable / len(given):
        return odds[0] - 1.0  # best to answer no question; the script prints 0 then
    last = metrics["best_f1_thresh"]
    following = [each for each in odds if each > last]
    return (last + following[0]) / 2 if following else last + 1.0


class _Score(NamedTuple):
    exact: float
    f1: float


def _exact(answer: str, given: str) -> float:
    return float(normalized(answer) == normalized(given))


def _f1(answer: str, given: str) -> float:
    """F1 of the words of two answers; 0 where they share none."""
    words, expected = normalized(answer).split(), normalized(given).split()
    shared = sum((Counter(words) & Counter(expected)).values())
    if shared == 0:
        return 0.0
    precision, recall = shared / len(words), shared / len(expected)
    return (2 * precision * recall) / (precision + recall)


def _scores(given: Given, answers: Mapping[str, str]) -> dict[str, _Score]:
    """The scores of version 2.0 by id; an answer that is empty after normalization is like ""."""
    scores = {}
    for id, all_texts in given.items():
        if (answer := answers.get(id)) is not None:
            texts = [text for text in all_texts if normalized(text)] or [""]
            exact = max(_exact(answer, text) for text in texts)
            # If one of the two is empty, they are equal or have nothing in common.
            f1 = max(_f1(answer, text) or _exact(answer, text) for text in texts)
            scores[id] = _Score(exact, f1)
    return scores


def _mean(scores: Collection[_Score]) -> list[float]:
    """The mean of each score, in percent."""
    return [100.0 * sum(each) / len(scores) for each in zip(*scores, strict=True)]


def _best_threshold(
    scores: Mapping[str, float],
    best_answers: Mapping[str, str],
    null_odds: Mapping[str, float],
    unanswerable: set[str],
) -> tuple[float, float]:
    """The best mean of `scores` in percent, and the odds above which no answer is given then."""
    # At first no question is answered. Then one more is answered at a time, in order of the odds.
    current = best = float(len(unanswerable))
    threshold = 0.0
    for id in sorted(null_odds, key=lambda id: null_odds[id]):
        if id in unanswerable:
            current -= bool(best_answers[id])
        else:
            current += scores.get(id, 0.0)
        if current > best:
            best, threshold = current, null_odds[id]
    return 100.0 * best / len(scores), float(threshold)
