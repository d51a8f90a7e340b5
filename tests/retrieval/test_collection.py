"""Collections in BEIR's form."""

import json

import pytest

from bert_tf.errors import UserError
from bert_tf.retrieval.collection import read_beir


@pytest.fixture
def folder(tmp_path):
    write(
        tmp_path / "corpus.jsonl",
        {"_id": "p1", "title": "Cats", "text": "The cat sat.", "metadata": {}},
        {"_id": "p2", "title": "", "text": " The dog ran. "},
        {"_id": 3, "title": None, "text": ""},
    )
    write(
        tmp_path / "queries.jsonl",
        {"_id": "q1", "text": "Who sat?"},
        {"_id": "q2", "text": "Who ran?"},
        {"_id": "q3", "text": "Who flew?"},
    )
    judge(tmp_path, "q1\tp1\t2", "q1\tp2\t0", "q3\t3\t1")
    return tmp_path


def write(path, *objects):
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))


def judge(folder, *lines, split="test", header="query-id\tcorpus-id\tscore"):
    (folder / "qrels").mkdir(exist_ok=True)
    (folder / "qrels" / f"{split}.tsv").write_text("\n".join([header, *lines]) + "\n")


def test_a_folder_is_read(folder):
    passages, queries, relevant = read_beir(folder)
    assert passages == {"p1": "Cats The cat sat.", "p2": "The dog ran.", "3": ""}
    assert relevant == {"q1": {"p1": 2, "p2": 0}, "q3": {"3": 1}}
    # Only queries with judgements in the split are read.
    assert queries == {"q1": "Who sat?", "q3": "Who flew?"}


def test_splits(folder):
    judge(folder, "q2\tp2\t1", split="dev")
    assert read_beir(folder, "dev").queries == {"q2": "Who ran?"}
    with pytest.raises(UserError, match=r"qrels/train.tsv not found; .*its splits are dev, test"):
        read_beir(folder, "train")


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_files_are_missing_or_empty(folder, name):
    (folder / name).write_text("")
    with pytest.raises(UserError, match=f"empty: .*{name}"):
        read_beir(folder)
    (folder / name).unlink()
    with pytest.raises(UserError, match=f"{name} not found; a folder in BEIR's form holds"):
        read_beir(folder)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"text": "x"}, "line 1: no column '_id'"),
        ({"_id": "x"}, "line 1: no column 'text'"),
        ({"_id": "x", "text": None}, "line 1, text: expected a text or a number, got null"),
        ({"_id": "x", "text": ["y"]}, "line 1, text: expected a text or a number, got a list"),
    ],
)
def test_a_line_without_id_or_text(folder, name, line, message):
    write(folder / name, line)
    with pytest.raises(UserError, match=f"{name}, {message}"):
        read_beir(folder)


def test_no_lines_and_an_id_that_is_repeated(folder):
    (folder / "corpus.jsonl").write_text("\n\n")
    with pytest.raises(UserError, match=r"corpus.jsonl is empty; write one object with _id"):
        read_beir(folder)
    write(folder / "corpus.jsonl", {"_id": "p1", "text": "x"})
    write(folder / "queries.jsonl", *[{"_id": "q1", "text": "Who sat?"}] * 2)
    with pytest.raises(UserError, match=r"queries.jsonl, line 2: the _id 'q1' occurs twice"):
        read_beir(folder)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["q9\tp1\t1"], "line 2: query 'q9' is not in .*queries.jsonl"),
        (["q1\tp1\t1", "q1\tp9\t1"], "line 3: passage 'p9' is not in .*corpus.jsonl"),
        (["q1\tp1\t0.5"], "line 2: the score '0.5' is not a whole number"),
        (["q1\tp1\t"], "line 2: the score '' is not a whole number"),
        (["q1\tp1\t²"], "line 2: the score '²' is not a whole number"),
        (["q1\tp1\t" + 5000 * "1"], "is not a whole number"),
        (["q1\tp1"], "line 2: 2 fields, but the header has 3"),
        (["q1\tp1\t1"] * 2, "line 3: query 'q1' and passage 'p1' are judged twice"),
        ([], "holds no judgements"),
    ],
)
def test_broken_judgements(folder, lines, message):
    judge(folder, *lines)
    with pytest.raises(UserError, match=message):
        read_beir(folder)


def test_judgements_of_another_form(folder):
    judge(folder, header="q1\t0\tp1\t1")
    (folder / "qrels" / "test.tsv").write_text("q1\t0\tp1\t1\nq1\t0\tp2\t1\n")
    with pytest.raises(UserError, match="no column 'query-id'"):
        read_beir(folder)
