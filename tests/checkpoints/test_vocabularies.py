"""What a vocabulary alone tells of the text that it was learned from."""

import pytest

from bert_tf.io.vocabulary import is_lower_case, read_vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "<S>", "<T>"]


@pytest.mark.parametrize("piece", ["The", "##D", "Москва", "Ελλάδα", "Éire", "##İ", "Ա"])
def test_a_capital_letter_of_any_alphabet_tells_of_text_that_was_not_lower_cased(piece):
    assert not is_lower_case([*SPECIAL, "the", piece])


@pytest.mark.parametrize("piece", ["é", "##ु", "한", "##각", "й", "が"])
def test_so_does_what_would_lose_its_accents(piece):
    assert not is_lower_case([*SPECIAL, "the", piece])


@pytest.mark.parametrize(
    ("name", "lower_case"),
    [("uncased", True), ("cased", False), ("chinese", True), ("multilingual-cased", False)],
)
def test_published_vocabularies_are_told_apart(shared_data, name, lower_case):
    pieces = read_vocabulary(shared_data / "vocab" / f"bert-base-{name}-vocab.txt")
    assert is_lower_case(pieces) == lower_case


def test_without_one_the_text_was_lower_cased_whatever_the_special_tokens_say():
    assert is_lower_case([*SPECIAL, "the", "##d", "москва", "ες", "straße", "中", "##1", "!"])
