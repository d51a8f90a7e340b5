"""Words and their pieces: texts that come as words, and texts that are cut into words."""

import random

import pytest
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.tasks.token_classification.conll import read_conll
from bert_tf.text import Tokenizer, WordPreprocessor, tokenize_words, without_padding
from bert_tf.text.words import cut, split_words
from tests.text.vocabularies import LOWER

PARTS = ["a", "Z", "é", "7", ".", "-", ",", "'", "s", "@", "://", " ", "\n", "中", "😂", "\u0301"]
PARTS += ["\0", "\u200d", "\xad", "\u00a0", "\u2028", "ß", "א", "\ufffd", "I", "\x01", "http"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(LOWER)


def named(ids, tokenizer: Tokenizer) -> list[list[str]]:
    return [[tokenizer.vocabulary[number] for number in row] for row in ids]


def test_pieces_know_their_word_and_the_first_of_each(tokenizer):
    words = tf.ragged.constant([["The", "unable", "cat"], [], ["a-b"]])
    found = tokenize_words(words, tokenizer)
    pieces = [["the", "un", "##able", "cat"], [], ["a", "-", "b"]]
    assert named(found.ids.to_list(), tokenizer) == pieces
    assert found.words.to_list() == [[0, 1, 1, 2], [], [0, 0, 0]]
    assert found.first_words.to_list() == [[0, 1, -1, 2], [], [0, -1, -1]]


def test_a_word_without_a_piece_is_unknown_so_that_it_has_a_place(tokenizer):
    found = tokenize_words(tf.ragged.constant([["a", "\u200b", "", "b"]]), tokenizer)
    assert named(found.ids.to_list(), tokenizer) == [["a", "[UNK]", "[UNK]", "b"]]
    assert found.first_words.to_list() == [[0, 1, 2, 3]]


def test_empty_strings_at_the_end_of_a_row_are_padding():
    words = tf.constant([["a", "", "b", ""], ["", "", "", ""]])
    assert without_padding(words).to_list() == [[b"a", b"", b"b"], []]
    assert without_padding(tf.zeros([2, 0], tf.string)).to_list() == [[], []]


def test_every_word_is_tagged_once_where_its_first_piece_has_most_context(tokenizer):
    words = [["the", "unable", "cat", "a", "b", "c", "cafe"], ["t"], []]
    padded = tf.ragged.constant(words).to_tensor("")
    for given in (tf.ragged.constant(words), padded):
        windows = WordPreprocessor(tokenizer, max_length=6, stride=2)(given)
        tagged = [
            (int(row), int(word))
            for row, here in zip(windows.rows, windows.words, strict=True)
            for word in here
            if word >= 0
        ]
        assert sorted(tagged) == [(0, word) for word in range(7)] + [(1, 0)]
        assert windows.rows.numpy().tolist() == [0, 0, 0, 1, 2]
        word_ids = windows.features["input_word_ids"].numpy().tolist()
        assert named(word_ids, tokenizer)[:2] == [
            ["[CLS]", "the", "un", "##able", "cat", "[SEP]"],
            ["[CLS]", "##able", "cat", "a", "b", "[SEP]"],
        ]
        expected = [[-1, 0, 1, -1, -1, -1], [-1, -1, 2, 3, -1, -1]]
        assert windows.words[:2].numpy().tolist() == expected


def test_windows_are_as_wide_as_the_longest(tokenizer):
    preprocess = WordPreprocessor(tokenizer, max_length=8)
    for words, width in (([["the"], ["a", "unable"]], 5), ([["a"] * 7], 8), ([[]], 2)):
        windows = preprocess(tf.ragged.constant(words, tf.string, ragged_rank=1))
        assert windows.words.shape[1] == width
        assert all(each.shape == windows.words.shape for each in windows.features.values())


def test_settings_that_cannot_be_are_refused(tokenizer):
    with pytest.raises(UserError, match="max_length is 2 and stride is 64"):
        WordPreprocessor(tokenizer, max_length=2, stride=64)
    with pytest.raises(UserError, match="max_length is 8 and stride is 0"):
        WordPreprocessor(tokenizer, max_length=8, stride=0)


@pytest.fixture(scope="module")
def split(tokenizer):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def split(texts):
        found = split_words(texts, tokenizer)
        return found, cut(texts, *found[1:])

    return lambda texts: split(tf.constant(texts, tf.string))


def words(split, text: str | bytes) -> list[str]:
    return [word.decode() for word in split([text])[1].to_list()[0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada met Charles, twice.", "Ada met Charles , twice ."),
        ("The U.S. and e.g. J. Smith", "The U.S. and e.g. J. Smith"),
        ("So did I. Then the FBI.", "So did I . Then the FBI ."),
        ("Ann's O'Brien l'eau they've", "Ann 's O'Brien l'eau they 've"),
        ("Ann\N{RIGHT SINGLE QUOTATION MARK}s", "Ann \N{RIGHT SINGLE QUOTATION MARK}s"),
        ("AL-AIN won 3-0 on 1996-08-22", "AL-AIN won 3-0 on 1996-08-22"),
        ("AT&T paid $1,000.50 at 12:30", "AT&T paid $ 1,000.50 at 12:30"),
        ("see http://t.co/a?b=1, @ada #ml", "see http://t.co/a?b=1 , @ada #ml"),
        ("wait... no--yes a,b (c)", "wait ... no -- yes a , b ( c )"),
        ("中国人 café\u0301 שלום", "中 国 人 café\u0301 שלום"),
        ("  x\0y \u200b \ufffd ", "x\0y"),
    ],
)
def test_words_are_those_of_tagged_data(split, text, expected):
    assert words(split, text) == expected.split(" ")


def test_words_of_a_text_have_the_pieces_that_they_have_alone(split, tokenizer):
    text = "the unable cat sat on a U.S. a-b café, unable's 12:30."
    (pieces, *_), cuts = split([text, "", "the"])
    alone = tokenize_words(cuts, tokenizer)
    for of_text, of_word in zip(pieces, alone, strict=True):
        assert tf.reduce_all(tf.equal(of_text, of_word)), (of_text, of_word)
    assert cuts.row_lengths().numpy().tolist() == [14, 0, 1]


def test_any_text_is_cut_into_words_that_ascend_and_have_pieces(split):
    source = random.Random(0)
    texts = ["".join(source.choices(PARTS, k=source.randint(0, 30))).encode() for _ in range(2000)]
    # Bytes that are no UTF-8.
    texts += [bytes(source.choices(range(256), k=20)) for _ in range(500)]
    (pieces, starts, ends), cuts = split(texts)
    columns = (starts, ends, cuts, pieces.first_words)
    of_texts = zip(texts, *(each.to_list() for each in columns), strict=True)
    for text, starts, ends, cut_out, first_words in of_texts:
        assert cut_out == [text[i:j] for i, j in zip(starts, ends, strict=True)]
        assert all(i < j for i, j in zip(starts, ends, strict=True))
        assert sorted(starts) == starts and sorted(ends) == ends
        assert [word for word in first_words if word >= 0] == list(range(len(starts)))


def test_words_of_real_tagged_data_stay_whole(split, shared_data):
    rows = read_conll(shared_data / "wnut17" / "emerging.test.annotated")
    sentences = rows.column("words")
    _, cuts = split(list(map(" ".join, sentences)))
    whole = total = 0
    for words, found in zip(sentences, cuts.to_list(), strict=True):
        there = {word.decode() for word in found}
        whole += sum(word in there for word in words)
        total += len(words)
    assert whole / total > 0.99


def test_ranges_are_cut_from_their_own_text():
    texts = [b"caf\xc3\xa9 au lait", b"", b"\xff\x00b"]
    starts = tf.ragged.constant([[0, 3, 6], [], [1, 2, 0]], tf.int32)
    ends = tf.ragged.constant([[5, 5, 6], [], [3, 3, 1]], tf.int32)
    pieces = cut(tf.constant(texts), starts, ends)
    assert pieces.to_list() == [[b"caf\xc3\xa9", b"\xc3\xa9", b""], [], [b"\x00b", b"b", b"\xff"]]


def test_there_may_be_nothing_to_cut():
    none = tf.RaggedTensor.from_row_splits(tf.zeros([0], tf.int32), [0, 0, 0])
    assert cut(tf.constant(["a", "b"]), none, none).to_list() == [[], []]
    assert cut(tf.constant([], tf.string), none[:0], none[:0]).to_list() == []
