"""Hard negatives are those of the ranks and the margin."""

import numpy as np
import pytest

from bert_tf.errors import UserError
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.mining import mine_negatives

# Each text is a direction in the plane, in degrees; q are queries, a answers, n neither.
DEGREES = {"q0": 0, "q1": 90, "q2": 200, "a0": 10, "a0b": 40, "a1": 80, "a2": 170}
DEGREES |= {f"n{d}": d for d in (15, 30, 50, 70, 105, 140, 215)}
RELEVANT = {"q0": {"a0": 1, "a0b": 2, "n50": 0}, "q1": {"a1": 1}, "q2": {"a2": 1}}
PASSAGES = [text for text in DEGREES if text[0] != "q"]
COLLECTION = Collection({each: each for each in PASSAGES}, {q: q for q in RELEVANT}, RELEVANT)


def found(*settings, collection=COLLECTION, **options):
    angles = (
        np.radians([DEGREES[text.strip()] for text in texts.values()])
        for texts in (collection.queries, collection.passages)
    )
    vectors = (3 * np.stack([np.cos(each), np.sin(each)], axis=1) for each in angles)
    return mine_negatives(collection, *vectors, *settings, **options)


def mined(*settings, collection=COLLECTION):
    return [" ".join(each) for each in found(*settings, collection=collection).values()]


# `mine_hard_negatives` of sentence-transformers 6.2.0 gives the same for these pairs and passages,
# with num_negatives, range_min = first rank - 1, range_max and absolute_margin.
@pytest.mark.parametrize(
    "settings, expected",
    [
        ((2, (1, 5)), ["n15 n30", "n105 n70", "n215 n140"]),
        ((2, (3, 5)), ["n50 n70", "n50 a0b", "n105 a1"]),
        ((3, (1, 8), 0.1), ["n50 n70 a1", "n50 a0b n140", "n140 n105 a1"]),
        ((1, (1, 3), 0.0), ["n50", "n105", "n140"]),
    ],
)
def test_the_rules_of_sentence_transformers(settings, expected):
    assert mined(*settings) == expected


def test_passages_within_the_margin_keep_their_ranks():
    # Computed by hand: of rank 3 and 4, cos(50°) and cos(70°) are 0.1 below cos(40°).
    assert mined(1, (3, 4), 0.1) == ["n50", "n50", "n105"]
    assert mined(3, (1, 4), 0.1) == ["n50 n70", "n50 a0b", "n140 n105 a1"]
    assert mined(1, (1, 2), 0.3) == ["", "", "n140"]


def test_equal_texts_are_one_passage():
    further = {"copy": " n15", "answer": "a0 ", "question": "q0", "again": "n215"}
    wider = COLLECTION._replace(passages=COLLECTION.passages | further)
    assert mined(2, (1, 5), collection=wider) == ["n15 n30", "n105 n70", "n215 n140"]
    # The answers of a question that occurs twice are all answers.
    twice = COLLECTION._replace(
        queries={"q0": "q0", "again": "q0"}, relevant={"q0": {"a0": 1}, "again": {"n15": 1}}
    )
    assert mined(1, (1, 1), collection=twice) == ["n30", "n30"]


def test_scores_are_cosines_or_dot_products():
    cosine = np.cos(np.radians(15))
    assert found(1)["q0"] == pytest.approx({"n15": cosine}, abs=1e-6)
    assert found(1, cosine=False)["q0"] == pytest.approx({"n15": 9 * cosine}, abs=1e-5)


@pytest.mark.parametrize("settings", [(0,), (1, (0, 5)), (1, (5, 4)), (3, (4, 5))])
def test_mistakes(settings):
    with pytest.raises(UserError, match="cannot give . negatives; give ascending ranks from 1"):
        mined(*settings)


@pytest.mark.parametrize("margin", [np.nan, np.inf])
def test_a_margin_is_finite(margin):
    with pytest.raises(UserError, match="margin must be a finite number"):
        mined(1, (1, 5), margin)
