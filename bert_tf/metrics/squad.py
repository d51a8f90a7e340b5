"""Exact match and F1 of answers, by the official scripts' code as tf-models-official carries it.

All in percent, as SQuAD's own scripts print them. Sources: evaluate-v1.1.py, evaluate-v2.0.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.data.squad import Question


def answer_metrics(questions: Sequence[Question], answers: Mapping[str, str]) -> dict[str, float]:
    """Metrics of version 1.1: `exact_match` and `f1`.

    Args:
        questions: all have answers.
        answers: for the id of each.
    """
    from official.nlp.tools import squad_evaluate_v1_1

    scores = squad_evaluate_v1_1.evaluate(_data_set(questions), answers)
    return {"exact_match": 100 * scores["exact_match"], "f1": 100 * scores["final_f1"]}


def answer_or_none_metrics(
    questions: Sequence[Question],
    answers: Mapping[str, str],
    best_answers: Mapping[str, str],
    null_odds: Mapping[str, float],
) -> dict[str, float]:
    """Metrics of version 2.0, where "" answers that there is no answer.

    Args:
        questions: with and without answers.
        answers: for the id of each.
        best_answers: the same before it is decided whether there is one.
        null_odds: how much more likely none is.

    Returns:
        Under the official script's names: `exact_match` (there `exact`) and `f1`; the same of the
        questions with an answer (`HasAns_…`) and without (`NoAns_…`); and `best_exact`, `best_f1`,
        what the best thresholds for the odds, `…_thresh`, would give. The script finds these
        itself from `best_answers` and `null_odds`.
    """
    from official.nlp.tools import squad_evaluate_v2_0

    data_set = _data_set(questions)
    scores = squad_evaluate_v2_0.evaluate(data_set, answers)
    best = squad_evaluate_v2_0.evaluate(data_set, best_answers, null_odds)
    metrics = {"exact_match": scores["exact"], "f1": scores["f1"]}
    for group in ("HasAns", "NoAns"):
        for name in ("exact", "f1"):
            if f"{group}_{name}" in scores:
                metrics[f"{group}_{name}"] = scores[f"{group}_{name}"]
    for name in ("exact", "f1"):
        metrics[f"best_{name}"] = best[f"final_{name}"]
        metrics[f"best_{name}_thresh"] = best[f"final_{name}_thresh"]
    return {name: float(value) for name, value in metrics.items()}


def best_null_threshold(
    questions: Sequence[Question], best_answers: Mapping[str, str], null_odds: Mapping[str, float]
) -> float:
    """The odds above which to answer that there is no answer, so that F1 is `best_f1`.

    The official script names the odds of the last question to be answered. This is halfway from
    there to the next, so that rounding cannot turn that question's answer into none.
    """
    metrics = answer_or_none_metrics(questions, best_answers, best_answers, null_odds)
    unanswerable = sum(not each.answers for each in questions)
    odds = sorted(null_odds.values())
    if metrics["best_f1"] == 100.0 * unanswerable / len(questions):
        return odds[0] - 1.0  # best to answer none; the script says 0 then
    last = metrics["best_f1_thresh"]
    following = [each for each in odds if each > last]
    return (last + following[0]) / 2 if following else last + 1.0


def _data_set(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """As much of the official file as the scripts look at."""
    rows = [
        {"id": each.id, "answers": [{"text": text} for text, _ in each.answers]}
        for each in questions
    ]
    return [{"paragraphs": [{"qas": rows}]}]
