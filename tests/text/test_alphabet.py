"""Choosing the characters of a vocabulary."""

import pytest

from bert_tf.errors import UserError
from bert_tf.text.vocabulary_learning import character_pieces

# Nine letters, two pieces each.
ENGLISH = dict.fromkeys(("the", "cat", "sat", "on", "mat"), 20_000)


def ideographs(number: int, count: int) -> dict[str, int]:
    return {chr(0x4E00 + place): count for place in range(number)}


def test_letters_get_two_pieces_and_what_stands_alone_gets_one():
    assert character_pieces({"ab": 3, "b": 1, "!": 2, "中": 1}, 30) == (
        *("!", "a", "b", "中"),
        *("##a", "##b"),
    )


def test_everything_is_kept_where_there_is_room():
    assert len(character_pieces({**ENGLISH, **ideographs(80, 1)}, 500)) == 18 + 80


def test_characters_that_hardly_any_word_needs_take_no_more_than_a_quarter():
    pieces = character_pieces({**ENGLISH, **ideographs(40, 1)}, 200)
    assert 5 + len(pieces) == 200 / 4
    assert [each for each in pieces if each >= chr(0x4E00)] == sorted(ideographs(27, 1))


def test_characters_up_to_99_95_percent_of_the_words_take_three_quarters():
    pieces = character_pieces({**ENGLISH, **ideographs(100, 5)}, 100)
    assert 5 + len(pieces) == 100 * 3 / 4


def test_characters_that_99_percent_of_the_words_need_take_all():
    pieces = character_pieces(ideographs(90, 5), 95)
    assert len(pieces) == 90


@pytest.mark.parametrize("size", [0, -3, 4, 9, 29])
def test_a_size_too_small_is_refused_with_the_smallest_that_works(size):
    counts = dict.fromkeys(("six", "letters", ":", "abcdef"), 1)
    with pytest.raises(UserError, match=rf"vocabulary size {size} is too small: .* need 30;"):
        character_pieces(counts, size)
    assert len(character_pieces(counts, 30)) == 25
