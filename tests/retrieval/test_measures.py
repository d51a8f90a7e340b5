"""Measures of retrieval, compared with their definitions."""

import math
import random

import pytest

from bert_tf import dependencies
from bert_tf.errors import UserError
from bert_tf.retrieval.evaluation import retrieval_metrics


def by_definition(ranking, judged):
    """The measures of one query, written out; `ranking` is best first."""
    gains = [judged.get(passage, 0) for passage in ranking]
    number = sum(degree > 0 for degree in judged.values())
    ideal = sorted(judged.values(), reverse=True)

    def dcg(values):
        return sum(gain / math.log2(place + 2) for place, gain in enumerate(values[:10]))

    hits = [place for place, gain in enumerate(gains, start=1) if gain > 0]
    return {
        "ndcg@10": dcg(gains) / dcg(ideal),
        "mrr@10": 1 / hits[0] if hits and hits[0] <= 10 else 0.0,
        "recall@10": sum(place <= 10 for place in hits) / number,
        "recall@100": sum(place <= 100 for place in hits) / number,
        "map": sum(i / place for i, place in enumerate(hits, start=1)) / number,
    }


def test_measures_are_those_of_their_definitions():
    source = random.Random(3)
    found, relevant, expected = {}, {}, []
    for query in range(20):
        passages = [f"p{i}" for i in range(150)]
        source.shuffle(passages)
        ranking = passages[:120]
        judged = {passage: source.choice([0, 1, 2, 3]) for passage in source.sample(passages, 12)}
        judged[ranking[source.choice([0, 5, 30])]] = 1
        found[f"q{query}"] = {p: 1 - i / 500 for i, p in enumerate(ranking)}
        relevant[f"q{query}"] = judged
        expected.append(by_definition(ranking, judged))
    metrics = retrieval_metrics(found, relevant)
    for name, value in metrics.items():
        assert value == pytest.approx(sum(each[name] for each in expected) / 20), name
    assert list(metrics) == ["ndcg@10", "mrr@10", "recall@10", "recall@100", "map"]
    assert all(type(value) is float for value in metrics.values())


def test_of_equal_scores_the_greater_id_comes_first_in_every_measure():
    # As in trec_eval, whatever the order in which they are given.
    for found in ({"a": 0.5, "b": 0.5}, {"b": 0.5, "a": 0.5}):
        assert set(retrieval_metrics({"q": found}, {"q": {"b": 1}}).values()) == {1.0}
        second = retrieval_metrics({"q": found}, {"q": {"a": 1}})
        assert (second["mrr@10"], second["map"]) == (0.5, 0.5)
        assert second["ndcg@10"] == pytest.approx(1 / math.log2(3))


def test_scores_that_differ_only_in_double_precision_are_no_ties():
    found = {"q": {"a": 1.0 + 1e-12, "b": 1.0}}
    assert retrieval_metrics(found, {"q": {"a": 1}})["map"] == 1.0


def test_queries_that_found_nothing_count_as_zero():
    relevant = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}, "q4": {"a": 0}}
    # "other" has no judgements, so it does not count.
    found = {"q1": {"a": 0.5}, "q2": {}, "q4": {"a": 0.5}, "other": {"b": 0.5}}
    assert set(retrieval_metrics(found, relevant).values()) == {0.25}
    assert set(retrieval_metrics({}, {"q1": {"a": 1}}).values()) == {0.0}


def test_mistakes():
    with pytest.raises(UserError, match="no query has a judged passage"):
        retrieval_metrics({"q": {"a": 1.0}}, {})
    with pytest.raises(UserError, match="passage for query 'q' is NaN"):
        retrieval_metrics({"q": {"a": math.nan}}, {"q": {"a": 1}})


def test_a_missing_package_is_named(monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(dependencies.importlib, "import_module", missing)
    with pytest.raises(UserError, match="measuring retrieval requires the extra retrieval"):
        retrieval_metrics({}, {"q": {"a": 1}})
