"""Pieces grown by joining the commonest pair of neighbours."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import bert_tf.text.pair_merging as pair_merging
from bert_tf.text.pair_merging import merged_pieces


def recounting(word_counts):
    """The same by the book: all pairs counted anew before every join."""
    words = {word: (word[0], *("##" + each for each in word[1:])) for word in word_counts}
    learned = []
    while True:
        pairs = Counter()
        for word, pieces in words.items():
            for pair in zip(pieces, pieces[1:], strict=False):
                pairs[pair] += word_counts[word]
        if not pairs or max(pairs.values()) < 2:
            return learned
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        joined = best[0] + best[1][2:]
        if joined not in learned:
            learned.append(joined)
        for word, pieces in words.items():
            result = []
            for piece in pieces:
                if result and (result[-1], piece) == best:
                    result[-1] = joined
                else:
                    result.append(piece)
            words[word] = tuple(result)


def test_the_commonest_pair_is_joined_first_and_equals_by_code_point():
    counts = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    assert list(merged_pieces(counts)) == [
        *("##es", "##est", "##ow", "low", "##ew", "##ewest", "newest"),
        *("##dest", "##idest", "widest", "##er", "lower"),
    ]


def test_a_pair_seen_once_is_not_joined():
    assert list(merged_pieces({"ab": 1, "ba": 2})) == ["ba"]


def test_a_run_of_one_character_is_joined_from_the_left():
    assert list(merged_pieces({"aaaaa": 2})) == ["##aa", "##aaaa", "aaaaa"]


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=9), st.integers(min_value=1, max_value=9), max_size=12
    )
)
@settings(max_examples=200, deadline=None)
def test_the_running_counts_give_what_counting_anew_gives(word_counts):
    assert list(merged_pieces(word_counts)) == recounting(word_counts)


def test_the_pieces_do_not_depend_on_the_order_of_the_words_or_of_hashing():
    script = (
        "import runpy, sys\n"
        "merged = runpy.run_path(sys.argv[1])['merged_pieces']\n"
        "words = ['banana', 'bandana', 'cabana', 'anagram', 'granada', 'canada']\n"
        "print(*merged(dict.fromkeys(words[:: int(sys.argv[2])], 3)))\n"
    )
    outputs = set()
    for seed, order in (("1", "1"), ("2", "1"), ("3", "-1")):
        done = subprocess.run(
            [sys.executable, "-c", script, Path(pair_merging.__file__), order],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert "banana" in outputs.pop().split()
