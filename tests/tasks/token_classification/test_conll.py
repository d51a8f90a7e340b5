"""CoNLL columns of every kind give sentences; what cannot be read is named with its line."""

import pytest

from bert_tf.errors import UserError
from bert_tf.tasks.token_classification.conll import read_conll

FOUR_COLUMNS = """\
-DOCSTART- -X- -X- O

Rivers NNS I-NP O
of IN I-PP O
Northern NNP I-NP I-LOC
Mali NNP I-NP I-LOC
Togo NNP B-NP B-LOC

Dry JJ I-NP O

-DOCSTART- -X- O O

Ada NNP I-NP I-PER
"""


@pytest.fixture
def write(tmp_path):
    def write(content: str):
        path = tmp_path / "data.conll"
        path.write_bytes(content.encode())
        return path

    return write


def test_four_columns_of_iob1_with_documents(write):
    rows = read_conll(write(FOUR_COLUMNS))
    assert rows.values == ([["Rivers", "of", "Northern", "Mali", "Togo"], ["Dry"], ["Ada"]],)
    assert rows.targets == [("O", "O", "B-LOC", "I-LOC", "B-LOC"), ("O",), ("B-PER",)]
    assert (rows.places, rows.ids) == ([3, 9, 13], [1, 1, 2])


def test_another_column_can_be_the_tag(write):
    rows = read_conll(write(FOUR_COLUMNS), tag_column=2)
    assert rows.targets[0] == ("B-NP", "B-PP", "B-NP", "I-NP", "B-NP")
    rows = read_conll(write("1\tO\tAda\n"), word_column=-1, tag_column=1)
    assert (rows.values, rows.targets) == (([["Ada"]],), [("O",)])


def test_two_columns_with_tabs_as_wnut_has_them(write):
    # Blank lines hold a tab; a word may hold a space, or what Unicode takes for an end of line.
    path = write("\ufeff@ada\tB-person\r\nNew York\tB-place\r\n\t\r\n\t\r\na\u2028b\u00a0\x0bc\tO")
    rows = read_conll(path)
    assert rows.values == ([["@ada", "New York"], ["a\u2028b\u00a0\x0bc"]],)
    assert (rows.targets, rows.places) == ([("B-person", "B-place"), ("O",)], [1, 5])


def test_words_alone_are_read_where_tags_are_not_needed(write):
    path = write("-DOCSTART- O\n\nAda\nran\n\nFar\n")
    rows = read_conll(path, word_column=1, needs_tags=False)
    assert (rows.values, rows.targets) == (([["Ada", "ran"], ["Far"]],), None)
    assert (rows.places, rows.ids) == ([3, 6], [1, 1])
    tagged = write("Ada B-PER\nran O\n")
    assert read_conll(tagged, needs_tags=False).targets == read_conll(tagged).targets
    with pytest.raises(UserError, match="line 2: 2 columns, but earlier lines have 1"):
        read_conll(write("Ada\nran O\n"), needs_tags=False)
    with pytest.raises(
        UserError, match="line 1: the words and the tags are the same column; add the tags"
    ):
        read_conll(write("Ada\nran\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "data is empty: .*data.conll"),
        ("\n\n", "data.conll has no sentences"),
        ("-DOCSTART- O\n\n", "data.conll has no sentences"),
        ("a O\nb N O\n", "line 2: 3 columns, but earlier lines have 2"),
        ("a O\n\nb\n", "line 3: 1 columns, but earlier lines have 2"),
        (
            "a B-X\nb NN\n",
            "line 2: NN after B-X, but the tags are IOB2, with B-NN there; correct it",
        ),
        ("a O\n\tO\n", "line 2: the word is empty"),
        ("a O\rb B-X\r\rc O\r", "line 1: lines end with CR only; convert the line endings to LF"),
        ("a O\nb B-X\r\r\n", "line 2: lines end with CR only"),
        (
            "a O\n\nb B-A\nc B-A\nd I-A\n\ne O\nf I-A\n",
            "line 8: I-A after O.*are IOB2, with B-A there; correct it",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_line(write, content, message):
    with pytest.raises(UserError, match=message):
        read_conll(write(content))


@pytest.mark.parametrize("blank", ["\u3000", "\u00a0", "\u200b"])
def test_what_only_unicode_calls_a_blank_is_a_word(write, blank):
    alone = read_conll(write(f"the\n{blank}\ncat\n"), needs_tags=False)
    tagged = read_conll(write(f"the O\n{blank} O\ncat O\n"))
    assert alone.values == tagged.values == ([["the", blank, "cat"]],)


def test_columns_that_are_not_there_are_named(write):
    path = write("a O\n")
    with pytest.raises(
        UserError, match="no column 2 for the tag; columns are 0 to 1; set data.tag"
    ):
        read_conll(path, tag_column=2)
    with pytest.raises(UserError, match="no column -3 for the word"):
        read_conll(path, word_column=-3)


def test_broken_schemes_can_be_taken_as_conlleval_takes_them(write):
    rows = read_conll(write("a B-A\nb O\nc I-A\nd I-B\n"), lenient_tags=True)
    assert rows.targets == [("B-A", "O", "B-A", "B-B")]


def test_the_real_data_are_read_whole(shared_data):
    counts = {"wnut17train.conll": 3394, "emerging.dev.conll": 1009}
    counts["emerging.test.annotated"] = 1287
    for name, count in counts.items():
        assert len(read_conll(shared_data / "wnut17" / name)) == count
