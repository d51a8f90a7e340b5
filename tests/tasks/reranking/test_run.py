"""Runs of re-ranking: what they read, learn, and write."""

import json
from pathlib import Path

import pytest

from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.tasks.reranking.run import Reranking
from tests.tasks.reranking.tiny_beir import write_beir
from tests.tasks.tiny_tasks import model_of
from tests.tasks.tiny_texts import write_config, write_lines

HEADER = "query\tpassage\trelevance"


def task_of(folder: Path, data: str, *settings: str) -> Reranking:
    return Reranking(load_config(write_config(folder, "reranking", f"path: ., {data}"), settings))


def write_pairs(folder: Path) -> Path:
    """The relevant passages begin with a cat."""
    for split in ("train", "dev"):
        lines = [
            f"the {('sea', 'tree')[i // 2 % 2]}\t{('cat', 'dog')[i % 2]} sat on\t{(i + 1) % 2}"
            for i in range(16)
        ]
        write_lines(folder / f"{split}.tsv", [HEADER, *lines])
    return folder


@pytest.mark.slow
def test_it_learns_from_a_table(tmp_path):
    write_pairs(tmp_path)
    path = write_config(tmp_path, "reranking", "path: ., format: tsv", epochs=8)
    metrics = runs.finetune(load_config(path), tmp_path / "run")
    assert list(metrics) == ["ndcg@10", "mrr@10", "map", "loss"]
    assert metrics["ndcg@10"] == 1
    assert runs.evaluate(tmp_path / "run") == pytest.approx(metrics, abs=1e-6)
    lines = [
        line.split() for line in (tmp_path / "run/predictions/dev.trec").read_text().split("\n")
    ]
    # The same two passages for each of two queries.
    assert [line[:4] for line in lines if line] == [
        ["0", "Q0", "0", "1"],
        ["0", "Q0", "1", "2"],
        ["1", "Q0", "0", "1"],
        ["1", "Q0", "1", "2"],
    ]


@pytest.mark.slow
def test_it_learns_from_a_folder_of_beir(tmp_path):
    write_beir(tmp_path)
    data = "path: ., format: beir, negatives: 3"
    path = write_config(tmp_path, "reranking", data, epochs=1)
    metrics = runs.finetune(
        load_config(path, ["train.batch_size=2", "loss.name=lambda_loss"]), tmp_path / "run"
    )
    assert runs.evaluate(tmp_path / "run") == pytest.approx(metrics, abs=1e-6)
    (first, *_), written = (
        [
            line.split()
            for line in (tmp_path / f"run/predictions/{name}.trec").read_text().splitlines()
        ]
        for name in ("dev", "test")
    )
    assert first[0] == "q2" and first[2].startswith("p") and first[-1] == "bert_tf"
    assert {line[0] for line in written} == {"q4"}
    assert [line[3] for line in written] == ["1", "2", "3", "4"]


def test_files_have_the_names_of_their_format(tmp_path):
    expected = {
        "tsv": "dev.tsv",
        "jsonl": "dev.jsonl",
        "triples": "dev.tsv",
        "beir": "qrels/dev.tsv",
    }
    for form, name in expected.items():
        (path,) = task_of(tmp_path, f"format: {form}").files("dev").values()
        assert path == tmp_path / name
    beir = task_of(tmp_path, "format: beir")
    assert {path.name for path in beir.sources("train")} == {
        "train.tsv",
        "corpus.jsonl",
        "queries.jsonl",
    }
    with pytest.raises(
        UserError, match="unknown data.format 'squad'; choose one of tsv, csv, json"
    ):
        task_of(tmp_path, "format: squad").training_rows()


def test_the_rows_decide_the_loss_unless_it_is_configured(tmp_path):
    write_pairs(tmp_path)
    task = task_of(tmp_path, "format: tsv")
    assert len(task.training_rows()) == 16
    model = model_of(task)
    task.compile(model, optimizer="sgd")
    assert model.loss.name == "binary_cross_entropy"

    task = task_of(tmp_path, "format: tsv, train_rows: 1", "loss.name=list_net")
    rows = task.training_rows()
    assert (rows.column("query"), rows.targets) == (["the sea"], [(1.0, 0.0)])
    task.compile(model, optimizer="sgd")
    assert model.loss.name == "list_net"

    line = json.dumps({"query": "the sea", "positive": "a cat", "negatives": ["a dog"]})
    write_lines(tmp_path / "train.jsonl", [line, line])
    task = task_of(tmp_path, "format: jsonl", "model.activation=identity")
    # Lists stay as they are.
    assert len(task.training_rows()) == 2
    task.compile(model, optimizer="sgd")
    assert model.loss.name == "list_net"
    assert model_of(task).activation == "identity"


def test_other_files_are_read_by_their_ending(tmp_path):
    write_pairs(tmp_path)
    path = write_lines(tmp_path / "other.csv", ["query,passage", "the sea,a cat"])
    task = task_of(tmp_path, "format: tsv")
    rows = task.read(path)
    assert len(rows) == 1 and rows.targets is None
    assert task.score(model_of(task), [[0.5]], rows) == {}


def test_mistakes_are_reported_before_training(tmp_path):
    path = write_lines(tmp_path / "train.tsv", ["query\tpassage", "the sea\ta cat"])
    with pytest.raises(UserError, match="train.tsv has no relevances"):
        task_of(tmp_path, "format: tsv").training_rows()
    write_lines(path, [HEADER, "the sea\ta cat\t3"])
    with pytest.raises(UserError, match="train.tsv, line 2: relevance 3.0 is outside 0 to 1"):
        task_of(tmp_path, "format: tsv").training_rows()
    with pytest.raises(UserError, match="the loss list_net compares the passages of a query"):
        task_of(tmp_path, "format: tsv", "loss.name=list_net").training_rows()
    with pytest.raises(UserError, match="negatives"):
        task_of(tmp_path, "format: beir, negatives: -1")
