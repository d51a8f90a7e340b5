"""Counting words: reading files in blocks, splitting as the tokenizer does."""

import gzip

import pytest

from bert_tf.errors import UserError
from bert_tf.io.vocabulary import TokenizerSettings
from bert_tf.text import word_counts
from bert_tf.text.word_counts import UNSPELLABLE, count_words, count_words_of_texts


@pytest.fixture
def text_file(tmp_path):
    def write(content: str | bytes, name: str = "text.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_words_are_cleaned_and_split_at_spaces_punctuation_and_cjk(text_file):
    file = text_file(
        "\ufeffDon't  stop\u2014na\u00efve\tna\u0131ve\r\ntwo\u2028lines\n中国a\u200db 3$\n"
    )
    assert count_words([file], TokenizerSettings()) == {
        **dict.fromkeys(["don", "'", "t", "stop", "\u2014", "naive", "na\u0131ve"], 1),
        **dict.fromkeys(["two", "lines", "中", "国", "ab", "3", "$"], 1),
    }


def test_cased_words_keep_capitals_and_accents(text_file):
    counts = count_words([text_file("Été été ÉTÉ\n")], TokenizerSettings(False))
    assert counts == {"Été": 1, "été": 1, "ÉTÉ": 1}


def test_a_word_over_200_characters_is_unspellable_and_one_of_200_is_not(text_file):
    counts = count_words(
        [text_file(f"{'a' * 200} {'b' * 201} {'c' * 300} ok\n")], TokenizerSettings()
    )
    assert counts == {"a" * 200: 1, UNSPELLABLE: 2, "ok": 1}


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_words_and_characters_survive_the_edges_of_blocks(text_file, monkeypatch, block):
    text = "ein größeres Wörterbuch\nfür 中国 und Ελλάδα 👩‍👩‍👧 größeres\n" * 3
    whole = count_words([text_file(text)], TokenizerSettings())
    monkeypatch.setattr(word_counts, "_BLOCK_BYTES", block)
    monkeypatch.setattr(word_counts, "_LONGEST_RUN", 1000)
    assert count_words([text_file(text)], TokenizerSettings()) == whole


def test_text_without_spaces_is_still_read_in_blocks(text_file, monkeypatch):
    monkeypatch.setattr(word_counts, "_BLOCK_BYTES", 10)
    monkeypatch.setattr(word_counts, "_LONGEST_RUN", 20)
    longest = 0

    def remember(texts, lower_case):
        nonlocal longest
        longest = max(longest, *map(len, texts))
        return original(texts, lower_case)

    original = word_counts._words
    monkeypatch.setattr(word_counts, "_words", remember)
    counts = count_words([text_file("中国人" * 100)], TokenizerSettings())
    assert counts == {"中": 100, "国": 100, "人": 100}
    assert longest <= 30


def test_counts_of_several_files_add_up(text_file):
    files = [text_file("a b", "1"), text_file("b c", "2")]
    assert count_words(files, TokenizerSettings()) == {"a": 1, "b": 2, "c": 1}


@pytest.mark.parametrize("block", [1, 20, 1 << 20])
def test_texts_are_counted_as_a_file_of_them(text_file, monkeypatch, block):
    monkeypatch.setattr(word_counts, "_BLOCK_BYTES", block)
    texts = ["Größeres Wörterbuch,\nfür 中国.", "", f"für {'b' * 201}", "end"]
    whole = count_words([text_file("\n".join(texts))], TokenizerSettings())
    assert count_words_of_texts(iter(texts), TokenizerSettings()) == whole
    assert count_words_of_texts([], TokenizerSettings()) == {}


def test_progress_ascends_to_the_bytes_on_disk(text_file, monkeypatch):
    monkeypatch.setattr(word_counts, "_BLOCK_BYTES", 8)
    files = [text_file("several words " * 20, "1"), text_file(gzip.compress(b"more words"), "2.gz")]
    total = sum(file.stat().st_size for file in files)
    calls = []
    count_words(files, TokenizerSettings(), lambda *call: calls.append(call))
    assert [call[1] for call in calls] == sorted(call[1] for call in calls)
    assert calls[-1] == ("counting words", total, total)


@pytest.mark.parametrize(("name", "message"), [("nowhere.txt", "not found"), ("", "is a folder")])
def test_what_is_no_file_is_named(tmp_path, name, message):
    with pytest.raises(UserError, match=f"text file {message}.*{name}"):
        count_words([tmp_path / name], TokenizerSettings())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is empty: .*text\.txt"),
        (gzip.compress(b"", mtime=0), r"is empty: .*text\.txt"),
        (gzip.compress(b"many words " * 1000, mtime=0)[:30], r"damaged gzip data: .*text\.txt"),
        (b"one\ntwo \xe4\xb8", "line 2"),  # a character that is cut off at the end
    ],
)
def test_a_file_that_is_no_text_is_named(text_file, content, message):
    with pytest.raises(UserError, match=message):
        count_words([text_file(content)], TokenizerSettings())


@pytest.mark.parametrize("block", [1, 4, 1 << 20])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_bytes_that_are_not_utf8_are_named_with_their_line(text_file, monkeypatch, block, pack):
    monkeypatch.setattr(word_counts, "_BLOCK_BYTES", block)
    file = text_file(pack(b"one\ntwo\nthr\xc3\xa9e caf\xe9 four\nfive\n"))
    with pytest.raises(UserError, match=r"not UTF-8: .*text\.txt, line 3 \(byte 0xe9\)"):
        count_words([file], TokenizerSettings())
