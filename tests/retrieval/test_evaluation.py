"""A model is measured by what it finds."""

import numpy as np
import pytest

from bert_tf.errors import UserError
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.evaluation import evaluate_retrieval

ANIMALS = "cat dog fish bird".split()
COLLECTION = Collection(
    passages={f"p{i}": f"the {name} sat" for i, name in enumerate(ANIMALS)},
    queries={"q0": "cat", "q1": "dog", "q2": "fish", "q3": "bird"},
    relevant={f"q{i}": {f"p{i}": 1} for i in range(4)},
)


def embed(texts, prompt=None):
    """Vectors that count animals; longer texts have longer vectors."""
    counts = [[text.count(name) for name in ANIMALS] for text in texts]
    return np.array(counts, np.float32) * [[len(text)] for text in texts]


@pytest.mark.parametrize("block", [1, 3, 100])
def test_right_answers_are_found(block):
    metrics, found = evaluate_retrieval(embed, COLLECTION, k=2, block=block)
    assert set(metrics.values()) == {1.0}
    assert found["q1"] == {"p1": 1.0, "p0": 0.0}


def test_wrong_answers():
    swapped = COLLECTION._replace(relevant={"q0": {"p1": 1}})
    metrics, _ = evaluate_retrieval(embed, swapped, k=1)
    assert set(metrics.values()) == {0.0}


def test_scores_are_cosines_or_dot_products():
    long = COLLECTION._replace(passages={"p0": "cat", "p1": "cat and much more dog"})
    assert next(iter(evaluate_retrieval(embed, long)[1]["q0"])) == "p0"
    assert next(iter(evaluate_retrieval(embed, long, cosine=False)[1]["q0"])) == "p1"


def test_prompts_and_blocks_reach_the_model():
    asked = []

    def noted(texts, prompt):
        asked.append((prompt, len(texts)))
        return embed(texts)

    evaluate_retrieval(noted, COLLECTION, query_prompt="query", passage_prompt="passage", block=3)
    assert asked == [("query", 4), ("passage", 3), ("passage", 1)]


def test_the_passage_with_the_id_of_the_query_can_be_left_out():
    own = Collection({"a": "cat", "b": "cat dog"}, {"a": "cat"}, {"a": {"b": 1}})
    assert evaluate_retrieval(embed, own, k=1)[0]["mrr@10"] == 0.0
    metrics, found = evaluate_retrieval(embed, own, k=1, skip_same_id=True)
    assert metrics["mrr@10"] == 1.0
    assert list(found["a"]) == ["b"]


def test_a_second_stage_ranks_the_candidates():
    asked = []

    def by_name(query, passages):
        asked.append((query, passages))
        return [passage.count("dog") for passage in passages]

    metrics, found = evaluate_retrieval(
        lambda texts, prompt: np.ones((len(texts), 2), np.float32),
        COLLECTION,
        rerank=by_name,
        candidates=3,
    )
    assert asked[0] == ("cat", ["the cat sat", "the dog sat", "the fish sat"])
    # The other passages follow after the candidates.
    assert found["q0"] == {"p1": 1.0, "p0": 0.0, "p2": 0.0, "p3": -1.0}
    assert metrics["recall@10"] == 1.0


def test_a_second_stage_that_returns_too_little():
    with pytest.raises(UserError, match=r"rerank returned scores of shape \[1\] for 4 passages"):
        evaluate_retrieval(embed, COLLECTION, rerank=lambda query, passages: [1.0])
