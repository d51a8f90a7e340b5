"""Exact match and F1 under SQuAD's own rules, and the threshold for no answer."""

import random

import pytest

from bert_tf.tasks.question_answering.metrics import (
    answer_metrics,
    answer_or_none_metrics,
    best_null_threshold,
)
from bert_tf.tasks.question_answering.squad import given_texts, read_squad


def questions(*answers: list[str]) -> dict[str, list[str]]:
    return {str(number): texts for number, texts in enumerate(answers)}


def test_the_official_rules_hold():
    """Articles, case, punctuation and spaces do not count; the best of several answers does."""
    asked = questions(["the cat sat", "dog"], ["Łódź"], ["a b c d"])
    metrics = answer_metrics(asked, {"0": "Cat,  SAT!", "1": "Lodz", "2": "b c x"})
    # F1 of the third: "b c d" and "b c x" share two of three words.
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
    best = {id: source.choice(words) for id in asked}
    # The lower the odds, the likelier right; with some seeds it is best to answer nothing.
    odds = {id: source.gauss(-1 if texts else 1, 2) for id, texts in asked.items()}
    threshold = best_null_threshold(asked, best, odds)
    answers = {name: "" if odds[name] > threshold else best[name] for name in best}
    metrics = answer_or_none_metrics(asked, answers, best, odds)
    assert metrics["f1"] == pytest.approx(metrics["best_f1"])
    assert min(abs(value - threshold) for value in odds.values()) > 1e-9


def official(version: str):
    """The official script of a version, as tf-models-official carries it."""
    return pytest.importorskip(f"official.nlp.tools.squad_evaluate_v{version}")


def articles(asked: dict[str, list[str]]) -> list[dict]:
    """Questions as the official scripts read them."""
    rows = [
        {"id": id, "answers": [{"text": text} for text in texts]} for id, texts in asked.items()
    ]
    return [{"paragraphs": [{"qas": rows}]}]


def assert_official_1_1(asked: dict[str, list[str]], answers: dict[str, str]) -> None:
    expected = official("1_1").evaluate(articles(asked), answers)
    assert answer_metrics(asked, answers) == {
        "exact_match": 100 * expected["exact_match"],
        "f1": 100 * expected["final_f1"],
    }


def assert_official_2_0(
    asked: dict[str, list[str]],
    answers: dict[str, str],
    best: dict[str, str],
    odds: dict[str, float],
) -> None:
    script = official("2_0")
    found = answer_or_none_metrics(asked, answers, best, odds)
    expected = script.evaluate(articles(asked), answers)
    of_best = script.evaluate(articles(asked), best, odds)
    names = {"exact_match": "exact", "f1": "f1"}
    names |= {name: name for name in found if name.startswith(("HasAns_", "NoAns_"))}
    for ours, theirs in names.items():
        assert found.pop(ours) == expected[theirs], ours
    for ours in list(found):
        assert found.pop(ours) == of_best[ours.replace("best_", "final_")], ours


PIECES = ["a", "an", "The", "cat", "CAT", "U.S.", "été", "Ⅷ", ",", "-", "…", " ", "\t", "sat", "42"]


def random_answer(source: random.Random) -> str:
    text = source.choice(["", " "]).join(source.choices(PIECES, k=source.randrange(5)))
    return source.choice(["", text, text, text])


@pytest.mark.parametrize("seed", range(20))
def test_random_answers_score_as_by_the_official_scripts(seed):
    source = random.Random(seed)
    asked = questions(*([random_answer(source) for _ in range(3)] for _ in range(60)))
    answers = {id: random_answer(source) for id in list(asked)[:-3]}
    assert_official_1_1(asked, answers)

    asked = questions(*([random_answer(source)] * source.randrange(3) for _ in range(60)))
    best = {id: random_answer(source) for id in asked}
    odds = {id: source.choice([-1.0, 0.5, source.gauss(0, 2)]) for id in asked}
    answers = {name: "" if odds[name] > 0.5 else best[name] for name in best}
    assert_official_2_0(asked, answers, best, odds)


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_all_of_dev_scores_as_by_the_official_scripts(shared_data, version):
    """Right answers, parts of them, and other words of the context."""
    rows = read_squad(shared_data / "squad" / "dev-v1.1.json")
    asked = given_texts(rows)
    if version == "2.0":
        # A third of the questions lose their answers.
        asked = {id: texts[: 3 * (i % 3)] for i, (id, texts) in enumerate(asked.items())}
    source, best, odds = random.Random(0), {}, {}
    for (id, texts), context in zip(asked.items(), rows.column("context"), strict=True):
        words = context.split()
        start = source.randrange(len(words))
        text = " ".join(words[start : start + source.randrange(1, 6)])
        if texts:
            right = source.choice(texts)
            text = source.choice([right, right[: len(right) // 2], f"the {right}!", text])
        best[id], odds[id] = text, source.gauss(-1 if texts else 1, 2)
    if version == "1.1":
        assert_official_1_1(asked, best)
        return
    answers = {name: "" if odds[name] > 0 else best[name] for name in best}
    assert_official_2_0(asked, answers, best, odds)
