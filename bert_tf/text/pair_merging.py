"""Growing pieces from characters: join the commonest pair of neighbours, again and again.

This is byte-pair encoding (Sennrich et al. 2016, arXiv 1508.07909, algorithm 1). The cost of
a join depends on what it changes; it needs no pass over all words.
"""

import heapq
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

CONTINUATION = "##"
_FEWEST = 2  # a pair seen once says nothing about the text to come
_Pair = tuple[str, str]


def merged_pieces(
    word_counts: Mapping[str, int], cuts: Sequence[list[str]] | None = None
) -> Iterator[str]:
    """Yields the longer pieces as they are learned; `cuts` are each word's initial pieces."""
    if cuts is None:
        cuts = [[word[0], *(CONTINUATION + each for each in word[1:])] for word in word_counts]
    words = [*cuts]
    occurrences = list(word_counts.values())
    pair_counts: Counter[_Pair] = Counter()
    # A list may hold a word twice, or one that has lost the pair: exact lists would cost more.
    words_with: defaultdict[_Pair, array[int]] = defaultdict(lambda: array("Q"))
    for index, word in enumerate(words):
        for pair in zip(word, word[1:], strict=False):
            pair_counts[pair] += occurrences[index]
            words_with[pair].append(index)
    # A count that falls is not pushed again: an entry may be too high, but never too low.
    heap = [(-count, pair) for pair, count in pair_counts.items()]
    heapq.heapify(heap)
    learned: set[str] = set()
    while heap:
        negative_count, pair = heapq.heappop(heap)
        count = pair_counts[pair]
        if count < _FEWEST:
            continue
        if count != -negative_count:
            heapq.heappush(heap, (-count, pair))
            continue
        joined = pair[0] + pair[1].removeprefix(CONTINUATION)
        if joined not in learned:
            learned.add(joined)
            yield joined
        risen = set()
        for index in set(words_with.pop(pair)):
            word = words[index]
            for old in zip(word, word[1:], strict=False):
                pair_counts[old] -= occurrences[index]
            words[index] = word = _join(word, pair, joined)
            for new in zip(word, word[1:], strict=False):
                pair_counts[new] += occurrences[index]
                if joined in new:
                    words_with[new].append(index)
                    risen.add(new)
        for new in risen:
            heapq.heappush(heap, (-pair_counts[new], new))


def _join(word: list[str], pair: _Pair, joined: str) -> list[str]:
    """`word` with every `pair` of neighbours in it, from the left, made one piece."""
    first, second = pair
    result = []
    position = 0
    while position < len(word):
        if word[position] == first and word[position + 1 : position + 2] == [second]:
            result.append(joined)
            position += 2
        else:
            result.append(word[position])
            position += 1
    return result
