"""Entity metrics are those of CoNLL's own script."""

import json

import pytest

from bert_tf.tasks.token_classification.metrics import entity_metrics
from tests.fixtures.make_conlleval import FIGURES, random_tags


def test_figures_are_those_of_conlleval():
    expected = json.loads(FIGURES.read_text())
    found = entity_metrics(*random_tags(), types=["LOC", "PER", "a-b"])
    # The script prints percent with two decimals.
    percent = {name: pytest.approx(100 * value, abs=0.0051) for name, value in found.items()}
    assert expected.pop("all") == {
        "accuracy": percent["accuracy"],
        "precision": percent["precision"],
        "recall": percent["recall"],
        "FB1": percent["f1"],
    }
    assert {name: each["FB1"] for name, each in expected.items()} == {
        name: percent[f"f1_{name}"] for name in ("LOC", "PER", "a-b")
    }


def test_an_entity_is_right_as_a_whole_or_not_at_all():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "B-PER"]]
    predicted = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "I-PER"]]
    assert entity_metrics(gold, predicted, ["LOC", "ORG", "PER"]) == {
        "f1": pytest.approx(2 / 7),
        "precision": pytest.approx(1 / 3),
        "recall": 0.25,
        "accuracy": pytest.approx(4 / 6),
        "f1_LOC": 1.0,
        "f1_ORG": 0.0,
        "f1_PER": 0.0,
    }


def test_sentences_without_entities_have_metrics():
    metrics = entity_metrics([["O"], ["O", "O"]], [["O"], ["O", "O"]], ["A"])
    assert metrics == {"f1": 0, "precision": 0, "recall": 0, "accuracy": 1, "f1_A": 0}
