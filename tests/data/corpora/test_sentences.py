"""Running text is cut where sentences end."""

import time

import pytest

from bert_tf.data.corpora.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One ends. Two ends! Does three?", ["One ends.", "Two ends!", "Does three?"]),
        ('He said: "Stop." She did.', ['He said: "Stop."', "She did."]),
        ("It was late (very late). We left.", ["It was late (very late).", "We left."]),
        ("A line\nbroken at a column. Next.", ["A line broken at a column.", "Next."]),
        ("A heading\n\nText.\n \nMore", ["A heading", "Text.", "More"]),
        ("Mr. Gray met Dr. Green.", ["Mr. Gray met Dr. Green."]),
        ("By J. S. Bach. Not by I. Newton.", ["By J. S. Bach.", "Not by I.", "Newton."]),
        ("Some, e.g. London, are big.", ["Some, e.g. London, are big."]),
        ("It cost 3.50 at most. 4 were sold.", ["It cost 3.50 at most.", "4 were sold."]),
        ("Well... so it goes.", ["Well... so it goes."]),
        ("我很好。你呢？好", ["我很好。", "你呢？", "好"]),
        (
            "all is lower case. nothing else! is it?",
            ["all is lower case.", "nothing else!", "is it?"],
        ),
        ("वह घर गया। फिर सोया।", ["वह घर गया।", "फिर सोया।"]),
        ("وہ گھر گیا۔ پھر سویا؟ ہاں", ["وہ گھر گیا۔", "پھر سویا؟", "ہاں"]),
        ("全角．次の文", ["全角．", "次の文"]),
        ("  \n\n \t ", []),
    ],
)
def test_sentences_end_where_a_reader_would_say_so(text, sentences):
    assert split_sentences(text) == sentences


def test_a_megabyte_of_dots_takes_no_time():
    start = time.perf_counter()
    split_sentences("." * 1_000_000 + " a")
    assert time.perf_counter() - start < 2
