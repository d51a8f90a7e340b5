"""`bert-tf mine` writes files from which embedders and re-rankers learn."""

import json

import pytest

import bert_tf
from bert_tf.cli.parser import main
from bert_tf.tasks.embedding import files
from bert_tf.tasks.reranking.data import read_candidates
from tests.tasks import tiny_objects
from tests.tasks.tiny_texts import write_lines

PAIRS = {"the cat": ["sat on a mat", "a cat sat"], "the dog": ["ran"], "a fish": ["swam under"]}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "embedder.keras"
    prompts = {"query": "good ", "passage": "bad "}
    tiny_objects.embedder(normalize=True, prompts=prompts).save(path)
    return str(path)


@pytest.fixture
def pairs(tmp_path):
    lines = [f"{query}\t{answer}" for query, answers in PAIRS.items() for answer in answers]
    return str(write_lines(tmp_path / "pairs.tsv", ["query\tpositive", *lines]))


def mine(model, data, out, *options):
    return main(["mine", model, "--data", data, "--out", str(out), *options])


@pytest.mark.end_to_end
def test_the_file_is_read_by_embedders_and_rerankers(model, pairs, tmp_path):
    out = tmp_path / "mined.jsonl"
    assert mine(model, pairs, out, "--negatives", "2") == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(each["query"], each["positive"]) for each in lines] == [
        (query, answer) for query, answers in PAIRS.items() for answer in answers
    ]
    embedder = bert_tf.load(model)
    everything = [answer for answers in PAIRS.values() for answer in answers]
    vectors = embedder.predict(everything, prompt="passage")
    for each in lines:
        scores = embedder.similarity(embedder.predict([each["query"]], prompt="query"), vectors)[0]
        best = sorted(range(len(everything)), key=lambda i, of=scores: -of[i])
        others = [everything[i] for i in best if everything[i] not in PAIRS[each["query"]]]
        assert each["negatives"] == others[:2]
    assert len(files.read(out, "jsonl").values) == 4
    rows = read_candidates(out, "jsonl")
    assert rows.values[1][0] == [lines[0]["positive"], *lines[0]["negatives"]]
    assert rows.targets == [(1.0, 0.0, 0.0)] * 4


@pytest.mark.end_to_end
def test_questions_without_enough_negatives_are_counted(model, pairs, tmp_path, capsys):
    out = tmp_path / "mined.jsonl"
    # Two of the four passages answer the first question.
    assert mine(model, pairs, out, "--negatives", "3") == 0
    assert len(out.read_text().splitlines()) == 2
    said = capsys.readouterr().err
    assert "1 of 3 questions are left out: they have fewer than 3 negatives (0 have none)" in said
    # UTF-8 cannot encode a lone surrogate.
    lines = ['{"text": "a log"}', '{"text": " "}', '{"text": "the tree \\udc00"}']
    corpus = write_lines(tmp_path / "corpus.jsonl", lines)
    assert mine(model, pairs, out, "--corpus", str(corpus), "--negatives", "4") == 0
    assert len(out.read_text().splitlines()) == 4


def test_a_collection_in_the_form_of_beir(model, tmp_path):
    (tmp_path / "qrels").mkdir()
    for name, lines in {
        "corpus.jsonl": ['{"_id": "1", "text": "the cat"}', '{"_id": "2", "text": "a log"}'],
        "queries.jsonl": ['{"_id": "q", "text": "cat"}'],
        "qrels/train.tsv": ["query-id\tcorpus-id\tscore", "q\t1\t1"],
    }.items():
        write_lines(tmp_path / name, lines)
    judgements = str(tmp_path / "qrels" / "train.tsv")
    assert mine(model, judgements, tmp_path / "beir.jsonl", "--negatives", "1") == 0
    expected = {"query": "cat", "positive": "the cat", "negatives": ["a log"]}
    assert json.loads((tmp_path / "beir.jsonl").read_text()) == expected
    assert mine(model, judgements, tmp_path / "beir.jsonl", "--corpus", judgements) == 2


@pytest.mark.parametrize(
    "lines, options, said",
    [
        (["query\tpositive", "a\tb"], ["--out", "x.tsv"], "must end in .jsonl"),
        (["text\tlabel", "a\tb"], [], "has no pairs; name its columns"),
        (
            ["query\tpositive", "a\tb"],
            [],
            "1 of 1 questions are left out: they have fewer than 3 negatives (1 ",
        ),
        (["query\tpositive", "a\tb"], ["--range", "5", "6"], "ranks 5 to 6 cannot give 3"),
        (["query\tpositive", "a\tb"], ["--data", "pairs.txt"], "must end in .tsv, .csv"),
    ],
)
def test_mistakes(model, tmp_path, capsys, lines, options, said):
    data = write_lines(tmp_path / "pairs.tsv", lines)
    assert mine(model, str(data), tmp_path / "o.jsonl", *options) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert said in error
    assert not (tmp_path / "o.jsonl").exists()


@pytest.mark.parametrize(
    "options, said",
    [
        (["--range", "9", "1"], "ranks 9 to 1 cannot give 3"),
        (["--margin", "nan"], "margin must be a finite number"),
    ],
)
def test_settings_are_checked_before_the_work(pairs, tmp_path, capsys, options, said):
    # A model that is not there would be the next mistake.
    assert mine("no model", pairs, tmp_path / "o.jsonl", *options) == 2
    assert said in capsys.readouterr().err


def test_a_reranker_is_refused(pairs, tmp_path, capsys):
    path = tmp_path / "ranker.keras"
    tiny_objects.reranker().save(path)
    assert mine(str(path), pairs, tmp_path / "o.jsonl") == 2
    assert "is a Reranker, which gives no vectors; give an embedder" in capsys.readouterr().err


@pytest.mark.slow
def test_an_export_finds_the_same(model, pairs, tmp_path):
    bert_tf.load(model).export(tmp_path / "saved")
    for name, path in {"keras": model, "saved": str(tmp_path / "saved")}.items():
        assert mine(path, pairs, tmp_path / f"{name}.jsonl", "--negatives", "2") == 0
    assert (tmp_path / "keras.jsonl").read_text() == (tmp_path / "saved.jsonl").read_text()


def test_a_place_that_cannot_be_written_is_refused_before_the_work(pairs, tmp_path, capsys):
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "mined.jsonl"
    assert mine("no model", pairs, out) == 2
    assert f"cannot write {out.parent} (" in capsys.readouterr().err
