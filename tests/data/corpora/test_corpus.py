"""Documents come from files in their order, and bad files are named."""

import gzip
import json
from pathlib import Path

import pytest

from bert_tf.data.corpora.corpus import FORMATS, Corpus
from bert_tf.errors import UserError


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_blank_lines_and_ends_of_files_end_documents(tmp_path):
    write(tmp_path / "1.txt", "\n\n one \r\ntwo\n \n\n\nthree\n")
    write(tmp_path / "2.txt", "four")
    corpus = Corpus(tmp_path, "sentence_per_line")
    assert list(corpus) == [["one", "two"], ["three"], ["four"]]


WIKITEXT = (
    " \n = First = \n \n It began . It went on @-@ and @-@ on . \n \n = = Part = = \n \n"
    " Costs 1 @,@ 000 @.@ 5 a = b . \n = not a title = \n \n = Second = Part = \n \n End . \n"
)
JSON_LINES = [{"id": 3, "text": t} for t in ("One. Two.", "", "Three.", "Half of \ud83d.")]


@pytest.mark.parametrize(
    ("format", "text", "documents"),
    [
        (
            "document_per_file",
            "\ufeffTitle\n\nIt began. It\nended.\n",
            [["Title", "It began.", "It ended."]],
        ),
        (
            "jsonl",
            "\n".join(map(json.dumps, JSON_LINES)) + "\n\n",
            [["One.", "Two."], ["Three."], ["Half of \ufffd."]],
        ),
        (  # titles begin documents, and headings are sentences
            "wikitext",
            WIKITEXT,
            [
                ["First", "It began .", "It went on-and-on .", "Part", "Costs 1,000.5 a = b ."]
                + ["= not a title ="],
                ["Second = Part", "End ."],
            ],
        ),
        ("wikitext", "The rest of it .\n\n = Title = \n", [["The rest of it ."], ["Title"]]),
    ],
)
def test_documents_of_a_file_are_those_of_its_format(tmp_path, format, text, documents):
    assert list(Corpus(write(tmp_path / "file", text), format)) == documents


@pytest.mark.parametrize("format", FORMATS)
def test_gzipped_files_read_as_plain_ones(tmp_path, format):
    data = b" = Title = \n" if format == "wikitext" else b'{"text": "Some text."}\n'
    plain = list(Corpus(write(tmp_path / "plain", data), format))
    assert list(Corpus(write(tmp_path / "zipped.gz", gzip.compress(data)), format)) == plain


def test_folders_globs_and_lists_name_each_file_once_in_order(tmp_path):
    for name in ("b.txt", "a.txt", "sub/c.txt", "d.md", ".hidden", ".git/HEAD", "sub/.git/HEAD"):
        write(tmp_path / ".corpus" / name, name)
    tmp_path /= ".corpus"

    def names(path):
        return [file.name for file in Corpus(path, "sentence_per_line").parts]

    assert names(tmp_path) == ["a.txt", "b.txt", "d.md", "c.txt"]
    assert names(f"{tmp_path}/**/*.txt") == ["a.txt", "b.txt", "c.txt"]
    assert names([tmp_path / "d.md", f"{tmp_path}/*.*"]) == ["d.md", "a.txt", "b.txt"]


def test_empty_files_are_reported_before_anything_is_read(tmp_path):
    for name in ("a.txt", "b.txt"):
        write(tmp_path / name, "")
    write(tmp_path / "c.txt", "text")
    with pytest.raises(UserError, match="corpus file is empty: .*a.txt and 1 more; remove the fil"):
        Corpus(tmp_path, "sentence_per_line")


def test_a_folder_that_may_not_be_read_is_told(tmp_path, monkeypatch):
    write(tmp_path / "sub" / "a.txt", "text")

    def refuse(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(UserError, match=r"corpus cannot be read: .* \(Permission denied\)"):
        Corpus(tmp_path, "sentence_per_line")


def test_links_to_folders_are_followed_but_not_in_a_circle(tmp_path):
    write(tmp_path / "corpus" / "a.txt", "a")
    write(tmp_path / "elsewhere" / "b.txt", "b")
    (tmp_path / "corpus" / "more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "again").symlink_to(tmp_path / "corpus")
    found = Corpus(tmp_path / "corpus", "sentence_per_line").parts
    assert [file.name for file in found] == ["a.txt", "b.txt"]


def test_a_corpus_can_be_gone_through_again_and_knows_how_far_it_is(tmp_path):
    write(tmp_path / "1.txt", "one\n")
    write(tmp_path / "2.txt", "two\n\nthree\n")
    corpus = Corpus(tmp_path, "sentence_per_line")
    first = list(corpus)
    assert corpus.position == corpus.size == 15
    assert list(corpus) == first
    assert corpus.position == corpus.size


@pytest.mark.parametrize(
    ("format", "data", "message"),
    [
        ("sentence_per_line", b"", "corpus file is empty"),
        ("sentence_per_line", b" \n\n", "contains no text"),
        ("sentence_per_line", b"good\nb\xe4d\n", r"not UTF-8: .*, line 2, byte 1 .*0xe4"),
        ("document_per_file", b"a\0b", "binary, not text: .*, line 1"),
        ("document_per_file", "a text".encode("utf-16"), "file is UTF-16, not UTF-8: .*; convert"),
        ("jsonl", b"\xfe\xff" + "中国".encode("utf-16-be"), "file is UTF-16, not UTF-8"),
        ("document_per_file", gzip.compress(b"cut short" * 99, mtime=0)[:-9], "damaged gzip"),
        (
            "jsonl",
            b'{"text": "a"}\n{"txt": "a"}\n',
            r'line 2: expected a JSON object with the key "t',
        ),
        ("jsonl", b'{"text": 1}\n', "line 1: expected a JSON object"),
        ("jsonl", b"[1]\n", "line 1: expected a JSON object"),
        ("jsonl", b"text\n", "line 1: expected a JSON object"),
        ("wikitext", b"= = Part = =\n\nText.\n", "has no line like = Title ="),
    ],
)
def test_a_bad_file_is_named_in_one_line(tmp_path, format, data, message):
    file = write(tmp_path / "bad.txt", data)
    with pytest.raises(UserError, match=message) as error:
        list(Corpus(file, format))
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_path_that_names_nothing_is_reported(tmp_path):
    for path, message in [
        (tmp_path / "none.txt", "corpus not found"),
        (f"{tmp_path}/*.txt", "no file matches"),
        (tmp_path, "contains no files"),
    ]:
        with pytest.raises(UserError, match=message):
            Corpus(path, "sentence_per_line")
    with pytest.raises(UserError, match="unknown data.format 'text'; choose one of sentence_per"):
        Corpus(tmp_path, "text")
