"""Queries with passages, in tables, JSON lines, triples and BEIR's folders."""

import json
from pathlib import Path

import pytest

import bert_tf
from bert_tf.data.columns import Columns
from bert_tf.tasks.reranking.candidates import grouped
from bert_tf.tasks.reranking.data import read_candidates
from tests.tasks.refusals import refusal
from tests.tasks.reranking.tiny_beir import write_beir

QUERY = "who sat"


def write(path: Path, *lines) -> Path:
    path.write_text(
        "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    )
    return path


def content(rows: Columns) -> list[tuple]:
    relevance = [None] * len(rows) if rows.targets is None else rows.targets
    return [*zip(*rows.values, relevance, strict=True)]


def test_tables_have_a_passage_in_each_row(tmp_path):
    for form, separator in (("tsv", "\t"), ("csv", ",")):
        rows = [("relevance", "query", "passage"), ("1", QUERY, "a cat"), ("0.25", QUERY, "a log")]
        path = write(tmp_path / f"train.{form}", *map(separator.join, rows))
        assert content(read_candidates(path, form)) == [
            (QUERY, ["a cat"], (1.0,)),
            (QUERY, ["a log"], (0.25,)),
        ]
    path = write(tmp_path / "test.tsv", "query\tpassage", f"{QUERY}\ta cat")
    assert content(read_candidates(path, "tsv")) == [(QUERY, ["a cat"], None)]


def test_json_lines_have_a_passage_or_lists(tmp_path):
    path = write(
        tmp_path / "train.jsonl",
        {"query": QUERY, "passage": "a cat", "relevance": True},
        {"query": QUERY, "passages": ["a cat", "a log"], "relevances": [3, -0.5]},
        {"query": QUERY, "positive": "a cat", "negatives": ["a log", "a tree"]},
        {"query": QUERY, "positive": "a cat"},
    )
    assert content(read_candidates(path, "jsonl")) == [
        (QUERY, ["a cat"], (1.0,)),
        (QUERY, ["a cat", "a log"], (3.0, -0.5)),
        (QUERY, ["a cat", "a log", "a tree"], (1.0, 0.0, 0.0)),
        (QUERY, ["a cat"], (1.0,)),
    ]
    write(path, {"query": QUERY, "passages": ["a cat"]}, {"query": QUERY, "passage": "a log"})
    assert read_candidates(path, "jsonl").targets is None


def test_triples_of_ms_marco_have_no_header(tmp_path):
    path = write(tmp_path / "train.tsv", f"{QUERY}\ta cat\ta log")
    assert content(read_candidates(path, "triples")) == [(QUERY, ["a cat", "a log"], (1.0, 0.0))]


def test_beir_has_judged_passages_and_others_of_the_corpus(tmp_path):
    path = write_beir(tmp_path) / "qrels/train.tsv"
    rows, alone = (read_candidates(path, "beir", many) for many in (3, 0))
    assert (content(alone)[0], alone.ids[0]) == (
        ("the cat", ["Cats cat sat on", "dog ran on"], (2.0, 0.0)),
        ("q0", ("p0", "p1")),
    )
    for (_, ids), (_, passages, relevance) in zip(rows.ids, content(rows), strict=True):
        assert len({*ids}) == len(passages) == len(relevance)
        assert relevance[-3:] == (0, 0, 0)
    assert rows.ids[0][1][:2] == ("p0", "p1")
    again, other = (read_candidates(path, "beir", 3, seed) for seed in (0, 1))
    assert (again.ids, content(again)) == (rows.ids, content(rows))
    assert other.ids != rows.ids
    everything = read_candidates(path, "beir", 100)
    assert all({*ids} == {f"p{i}" for i in range(12)} for _, ids in everything.ids)


def test_rows_of_the_same_query_are_joined():
    columns = ["a", "c", "a"], [["b"], ["d", "e"], ["b", "f"]]
    rows = grouped(Columns(("query", "passages"), columns))
    assert content(rows) == [("a", ["b", "f"], None), ("c", ["d", "e"], None)]


LINES = {
    "a column": (
        "tsv",
        ["query\ttext", "a\tb"],
        "no column 'passage'; the columns are 'query', 'text'",
    ),
    "a relevance": (
        "tsv",
        ["query\tpassage\trelevance", "a\tb\thigh"],
        "line 2: relevance is 'high', not a finite number",
    ),
    "some relevances": (
        "tsv",
        ["query\tpassage\trelevance", "a\tb\t1", "a\tc\t"],
        "line 3: relevance is missing, but other rows have one; give all rows one, or none",
    ),
    "an empty query": (
        "tsv",
        ["query\tpassage", "\tb"],
        "line 2: query is empty; write one, or remove the row",
    ),
    "an empty passage": (
        "jsonl",
        [{"query": "a", "passages": ["b", " "]}],
        "line 1: passages: passage 1 is empty",
    ),
    "no rows": ("csv", ["query,passage"], "train has no rows"),
    "no passages": (
        "jsonl",
        [{"query": "a", "passages": []}],
        "line 1: passages has 0; give one or more",
    ),
    "no key": (
        "jsonl",
        [{"query": "a", "text": "b"}],
        "line 1: no 'passage', 'passages' or 'positive'; the keys are 'query', 'text'",
    ),
    "no query": ("jsonl", [{"passage": "a"}], "line 1: no 'query'; the keys are 'passage'"),
    "other numbers": (
        "jsonl",
        [{"query": "a", "passages": ["b", "c"], "relevances": [1]}],
        "line 1: relevance has 1 numbers, but there are 2 passages; give one for each",
    ),
    "a passage of another kind": (
        "jsonl",
        [{"query": "a", "passages": ["b", 3]}],
        "line 1: passages, entry 1 is 3, not a string",
    ),
    "no list": (
        "jsonl",
        [{"query": "a", "positive": "b", "negatives": "c"}],
        "line 1: negatives must be a list",
    ),
    "a list of relevances": (
        "jsonl",
        [{"query": "a", "passages": ["b"], "relevances": ["1"]}],
        "line 1: relevance is '1', not a finite number",
    ),
    "an immense relevance": (
        "jsonl",
        ['{"query": "a", "passages": ["b"], "relevances": [' + "9" * 400 + "]}"],
        f"line 1: relevance is {'9' * 60}…, not a finite number",
    ),
    "two fields": (
        "triples",
        ["a\tb"],
        "line 1: 2 fields; a triple has 3, and the file has no header: query, positive, negative",
    ),
}


@pytest.mark.parametrize("mistake", LINES)
def test_a_mistake_is_one_sentence_with_its_line(mistake, tmp_path):
    form, lines, expected = LINES[mistake]
    assert refusal(read_candidates, write(tmp_path / "train", *lines), form).endswith(expected)


def test_mistakes_in_a_folder_of_beir(tmp_path):
    folder = write_beir(tmp_path)
    assert refusal(read_candidates, folder / "train.tsv", "beir").endswith(
        "train.tsv is not a judgement file of a BEIR folder; give FOLDER/qrels/SPLIT.tsv"
    )
    (folder / "corpus.jsonl").write_text("")
    with pytest.raises(bert_tf.UserError, match="data is empty: .*corpus.jsonl"):
        read_candidates(folder / "qrels/train.tsv", "beir")
