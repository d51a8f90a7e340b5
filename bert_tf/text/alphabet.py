"""Choosing the characters of a vocabulary, for any script.

Every character that is kept costs a piece or two. Every character that is left out turns the words
that hold it into [UNK]. So words decide: the common characters, which spell nearly all words, come
first, and the rare ones must leave room.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

from bert_tf.errors import UserError
from bert_tf.io.vocabulary import SPECIAL_TOKENS
from bert_tf.text.pair_merging import CONTINUATION

# The share of the vocabulary that characters may take. The characters needed to spell 99% of the
# words may take all of it, those up to 99.95% three quarters, and rarer ones a quarter.
_ALL_OF_IT = 0.99
_SHARES = ((_ALL_OF_IT, 1), (0.9995, 3 / 4), (1, 1 / 4))


def character_pieces(word_counts: Mapping[str, int], size: int) -> tuple[str, ...]:
    """The one-character pieces: first those that begin a word, then those that continue one.

    A character gets both, wherever in a word it was seen, so that a word of known characters is not
    [UNK]. A character that always stands alone, like punctuation and CJK ideographs, needs only the
    first. Both lists are in the order of code points.

    >>> character_pieces({"cat": 2, ".": 1}, size=20)
    ('.', 'a', 'c', 't', '##a', '##c', '##t')

    Args:
        word_counts: how often each word occurs; at least one.
        size: of the whole vocabulary.

    Raises:
        UserError: `size` has no room for the special tokens and the characters; the message names
            a size that has.
    """
    occurrences: Counter[str] = Counter()
    joined: set[str] = set()
    for word, count in word_counts.items():
        for character in word:
            occurrences[character] += count
        if len(word) > 1:
            joined.update(word)
    ranked = sorted(occurrences, key=lambda character: (-occurrences[character], character))
    costs = [2 if character in joined else 1 for character in ranked]
    spelled = _words_spelled(ranked, word_counts)

    def needed(share_of_words: float) -> int:
        return bisect_left(spelled, share_of_words * spelled[-1]) + 1

    smallest = len(SPECIAL_TOKENS) + sum(costs[: needed(_ALL_OF_IT)])
    if size < smallest:
        raise UserError(
            f"vocabulary size {size} is too small: the {len(SPECIAL_TOKENS)} special tokens and "
            f"the characters of this text need {smallest}; choose that size or more"
        )
    kept = 0
    taken = len(SPECIAL_TOKENS)
    for share_of_words, share_of_size in _SHARES:
        most = needed(share_of_words)
        while kept < most and taken + costs[kept] <= share_of_size * size:
            taken += costs[kept]
            kept += 1
    characters = sorted(ranked[:kept])
    return (*characters, *(CONTINUATION + each for each in characters if each in joined))


def _words_spelled(ranked: list[str], word_counts: Mapping[str, int]) -> list[int]:
    """How many words the first of the `ranked` characters spell, the first two, and so on."""
    rank = {character: number for number, character in enumerate(ranked)}
    spelled_from = [0] * len(ranked)
    for word, count in word_counts.items():
        spelled_from[max(rank[character] for character in word)] += count
    return list(accumulate(spelled_from))
