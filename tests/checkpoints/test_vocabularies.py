"""What a vocabulary alone tells of the text that it was learned from."""

import pytest

from bert_tf.checkpoints.vocabularies import is_lower_case

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "<S>", "<T>"]


@pytest.mark.parametrize("piece", ["The", "##D", "Москва", "Ελλάδα", "Éire", "##İ", "Ա"])
def test_a_capital_letter_of_any_alphabet_tells_of_text_that_was_not_lower_cased(piece):
    assert not is_lower_case([*SPECIAL, "the", piece])


def test_without_one_the_text_was_lower_cased_whatever_the_special_tokens_say():
    assert is_lower_case([*SPECIAL, "the", "##d", "москва", "ες", "straße", "中", "##1", "!"])
