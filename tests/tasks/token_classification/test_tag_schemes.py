"""Tags of every scheme become the same IOB2, and tags that break their scheme are found."""

import pytest

from bert_tf.tasks.token_classification.tag_schemes import find_violation, parse, to_iob2

# The same three sentences in each scheme: entities beside each other, of one type and of two, at
# the ends of sentences, of one word and of three.
SENTENCES = {
    "IOB1": ["I-A B-A I-A O I-B", "I-A I-B I-B I-B", "O O"],
    "IOB2": ["B-A B-A I-A O B-B", "B-A B-B I-B I-B", "O O"],
    "BIOES": ["S-A B-A E-A O S-B", "S-A B-B I-B E-B", "O O"],
    "BILOU": ["U-A B-A L-A O U-B", "U-A B-B I-B L-B", "O O"],
}


def parsed(*sentences: str):
    return [[parse(tag) for tag in sentence.split()] for sentence in sentences]


@pytest.mark.parametrize("scheme", SENTENCES)
def test_every_scheme_is_known_and_becomes_iob2(scheme):
    sentences = parsed(*SENTENCES[scheme])
    assert find_violation(sentences) is None
    assert [" ".join(to_iob2(tags)) for tags in sentences] == SENTENCES["IOB2"]


def test_a_type_may_have_hyphens_and_what_is_no_tag_is_none():
    assert parse("B-creative-work") == ("B", "creative-work")
    assert parse("O") == ("", "")
    assert [parse(tag) for tag in ("", "B", "B-", "-A", "X-A", "b-A", "NN", "BI-A")] == [None] * 8


@pytest.mark.parametrize(
    ("sentences", "place", "why"),
    [
        (["B-A I-A", "B-A", "O I-B"], (2, 1), "I-B after O, but the tags are IOB2"),
        (["B-A I-A", "B-A I-B"], (1, 1), "I-B after B-A, but the tags are IOB2"),
        (["I-A O", "I-B", "O B-B"], (2, 1), "B-B after O, but the tags are IOB1"),
        (["S-A B-A", "O"], (0, 1), "B-A at the end of a sentence, but the tags are BIOES"),
        (["B-A E-A", "B-A O"], (1, 1), "O after B-A, but the tags are BIOES"),
        (["B-A E-A", "O E-A"], (1, 1), "E-A after O, but the tags are BIOES"),
        (["B-A E-B"], (0, 1), "E-B after B-A, but the tags are BIOES"),
        (["S-A", "U-A"], (1, 0), "U-A among tags with E or S, but the tags are BIOES"),
        (["B-A L-A L-A"], (0, 2), "L-A after L-A, but the tags are BILOU"),
    ],
)
def test_a_tag_that_breaks_its_scheme_is_found(sentences, place, why):
    assert find_violation(parsed(*sentences)) == (*place, why)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O I-A I-B I-B B-B", "O B-A B-B I-B B-B"),
        ("B-A E-A E-A I-A", "B-A I-A B-A B-A"),
        ("S-A I-A L-A O E-B", "B-A B-A I-A O B-B"),
    ],
)
def test_what_continues_no_entity_begins_one(tags, expected):
    assert " ".join(to_iob2(*parsed(tags))) == expected
