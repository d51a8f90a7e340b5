"""Tags of every scheme become the same IOB2, and tags that break their scheme are found."""

import pytest

from bert_tf.tasks.token_classification.tag_schemes import (
    find_violation,
    numbers_in,
    parse_tags,
    to_iob2,
)

# The same three sentences in each scheme: adjacent entities of one type and of two, entities at the
# ends of sentences, of one word and of three.
SENTENCES = {
    "IOB1": ["I-A B-A I-A O I-B", "I-A I-B I-B I-B", "O O"],
    "IOB2": ["B-A B-A I-A O B-B", "B-A B-B I-B I-B", "O O"],
    "BIOES": ["S-A B-A E-A O S-B", "S-A B-B I-B E-B", "O O"],
    "BILOU": ["U-A B-A L-A O U-B", "U-A B-B I-B L-B", "O O"],
    "BMES": ["S-A B-A E-A O S-B", "S-A B-B M-B E-B", "O O"],
}


def parsed(*sentences: str):
    read = parse_tags(" ".join(sentences).split())
    return [[read[tag] for tag in sentence.split()] for sentence in sentences]


@pytest.mark.parametrize("scheme", SENTENCES)
def test_every_scheme_is_known_and_becomes_iob2(scheme):
    sentences = parsed(*SENTENCES[scheme])
    assert find_violation(sentences) is None
    assert [" ".join(to_iob2(tags)) for tags in sentences] == SENTENCES["IOB2"]


@pytest.mark.parametrize(
    ("tags", "parts"),
    [
        ("O B-creative-work I-a", [("", ""), ("B", "creative-work"), ("I", "a")]),
        ("o b_per i_per", [("", ""), ("B", "per"), ("I", "per")]),
        ("O PER-B PER_I", [("", ""), ("B", "PER"), ("I", "PER")]),
        ("B I", [("B", "_"), ("I", "_")]),
        ("O S-A", [("", ""), ("S", "A")]),
        # These tags have no prefixes; the names of their types only look as if they had.
        ("O e-mail phone", [("", ""), ("", "e-mail"), ("", "phone")]),
        ("B_PC E_RD V", [("", "B_PC"), ("", "E_RD"), ("", "V")]),
        ("E S", [("", "E"), ("", "S")]),
        ("O o -LRB-", [("", ""), ("", "o"), ("", "-LRB-")]),
        # Labels of checkpoints that also tag pieces and padding.
        ("[PAD] O B-A I-A X", [("", "[PAD]"), ("", ""), ("B", "A"), ("I", "A"), ("", "X")]),
    ],
)
def test_a_set_decides_whether_its_tags_have_prefixes(tags, parts):
    assert [*parse_tags(tags.split()).values()] == parts


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("O I-A I-B", "I-A I-A I-A I-A O I-B"),
        ("O A B", "A A A A O B"),
        ("o b_A i_A b_B i_B", "b_A i_A i_A b_A o b_B"),
        ("O B-A I-A E-A S-A S-B", "B-A I-A E-A S-A O S-B"),
        ("O B-A M-A E-A S-A B-B", "B-A M-A E-A S-A O B-B"),
        ("O A-B A-I B-B", "A-B A-I A-I A-B O B-B"),
    ],
)
def test_entities_have_the_tags_of_the_model(labels, expected):
    labels = labels.split()
    (tags,) = parsed("B-A I-A I-A B-A O B-B")
    assert [labels[number] for number in numbers_in(labels, tags)] == expected.split()
    assert numbers_in(["O", "B-C", "I-C"], tags) == [None] * 4 + [0, None]


@pytest.mark.parametrize(
    ("sentences", "place", "why"),
    [
        (["B-A I-A", "B-A", "O I-B"], (2, 1), "I-B after O, but the tags are IOB2, with B-B there"),
        (["B-A I-A", "B-A I-B"], (1, 1), "I-B after B-A, but the tags are IOB2, with B-B there"),
        (["I-A O", "I-B", "O B-B"], (2, 1), "B-B after O, but the tags are IOB1, with I-B there"),
        (["S-A B-A", "O"], (0, 1), "B-A after S-A, but the tags are BIOES, with S-A there"),
        (["B-A E-A", "B-A O"], (1, 0), "B-A after O, but the tags are BIOES, with S-A there"),
        (["B-A E-A", "O E-A"], (1, 1), "E-A after O, but the tags are BIOES, with S-A there"),
        (["B-A E-B"], (0, 0), "B-A after O, but the tags are BIOES, with S-A there"),
        (["S-A", "U-A"], (1, 0), "U-A after O, but the tags are BIOES, with S-A there"),
        (["B-A L-A L-A"], (0, 2), "L-A after L-A, but the tags are BILOU, with U-A there"),
        (["B-A I-A", "O A"], (1, 1), "A after O, but the tags are IOB2, with B-A there"),
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
