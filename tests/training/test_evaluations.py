"""Evaluations: when they are due, which is the best, and when to stop waiting."""

import math

import pytest

from bert_tf.training.evaluations import Evaluations, in_words, rank


def evaluated(*accuracies, **options):
    evaluations = Evaluations(10, best_metric="accuracy", **options)
    for number, accuracy in enumerate(accuracies, start=1):
        evaluations.add(10 * number, {"accuracy": accuracy, "loss": 1.0})
    return evaluations


def test_an_evaluation_is_due_every_so_many_steps_once():
    evaluations = Evaluations(10, at_end=False)
    assert [step for step in range(26) if evaluations.due(step, 25)] == [10, 20]
    evaluations.add(10, {})
    assert not evaluations.due(10, 25)
    assert evaluations.due(20, 25)


@pytest.mark.parametrize("every", [10, 100])
def test_the_last_step_is_evaluated_on_request(every):
    assert Evaluations(every, at_end=True).due(25, 25)
    assert not Evaluations(every, at_end=False).due(25, 25)
    assert not Evaluations(every, at_end=False).due(30, 30)


def test_the_higher_metric_is_better_and_then_the_lower_loss():
    ranks = [
        rank({"f1": f1, "loss": loss}, "f1")
        for f1, loss in [(math.nan, 0.1), (0.5, 0.3), (0.5, 0.2), (0.6, 9.0)]
    ]
    assert ranks == sorted(ranks)
    assert rank({"f1": 0.5}, "f1") == (0.5, 0.0)


def test_the_best_weights_are_kept_on_request_the_earliest_of_equals():
    assert evaluated(0.5, 0.7, 0.7, 0.6, keep_best=True).kept(43) == 20
    assert evaluated(0.5, 0.7, 0.7, 0.6).kept(43) == 43
    assert evaluated(keep_best=True).kept(7) == 7


@pytest.mark.parametrize(
    ("accuracies", "over"),
    [([], False), ([0.5], False), ([0.5, 0.4], False), ([0.5, 0.4, 0.5], True)]
    + [([0.5, 0.4, 0.6], False), ([0.5, 0.4, 0.6, 0.6, 0.6], True)],
)
def test_patience_ends_after_so_many_evaluations_without_a_better_one(accuracies, over):
    assert evaluated(*accuracies, patience=2).over is over
    assert evaluated(*accuracies).over is False


def test_results_go_on_from_those_of_an_earlier_session():
    evaluations = evaluated(patience=2, keep_best=True)
    evaluations.results = [(10, {"accuracy": 0.9}), (20, {"accuracy": 0.8})]
    evaluations.add(30, {"accuracy": 0.7})
    assert evaluations.over
    assert evaluations.kept(30) == 10


def test_metrics_are_printed_in_one_line():
    assert in_words({"loss": 0.123456, "accuracy": 1.0}) == "loss 0.1235  accuracy 1"
