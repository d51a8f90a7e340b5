"""Runs of an embedder: files of every format, and a training with its predictions."""

import json

import numpy as np
import pytest

import bert_tf
from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.tasks.embedding import files
from bert_tf.tasks.embedding.data import form_of
from bert_tf.tasks.embedding.run import EmbeddingTask
from tests.runs.killed import Killed, check_equal, kill_after
from tests.tasks import tiny_objects as tiny
from tests.tasks.tiny_tasks import model_of
from tests.tasks.tiny_texts import write_config, write_lines, write_mnli

PAIRS = [
    ("the cat sat", "cat"),
    ("a dog ran", "dog"),
    ("the bird flew", "bird"),
    ("fish", "fish swam"),
    ("a log", "log"),
    ("the tree .", "tree"),
    ("good", "the good"),
    ("bad", "the bad"),
]


def task_of(path, settings=()) -> EmbeddingTask:
    return EmbeddingTask(load_config(path, settings))


def write_scored(folder):
    lines = [f"{a}\t{b}\t1" for a, b in PAIRS]
    lines += [f"{a}\t{b}\t0" for (a, _), (_, b) in zip(PAIRS, PAIRS[1:] + PAIRS[:1], strict=True)]
    for name in ("train", "dev"):
        write_lines(folder / f"{name}.tsv", ["sentence1\tsentence2\tscore", *lines])


@pytest.mark.end_to_end
def test_a_run_learns_pairs_with_scores(tmp_path):
    write_scored(tmp_path)
    write_lines(tmp_path / "test.tsv", ["sentence1\tsentence2", "the cat\tthe dog"])
    path = write_config(tmp_path, "embedding", "path: ., format: tsv", epochs=8)
    settings = ["train.learning_rate=0.01", "model.num_hidden_layers=1"]
    config = load_config(path, [*settings, "loss.matryoshka=[16,8]"])
    assert EmbeddingTask(config).best_metric == "spearman"
    metrics = runs.finetune(config, tmp_path / "run")
    assert list(metrics) == ["spearman", "pearson"] and metrics["spearman"] > 0.8
    header, *written = (tmp_path / "run/predictions/dev.tsv").read_text().splitlines()
    assert header == "index\tprediction" and len(written) == 16
    # Scores that are not known are predicted.
    header, only = (tmp_path / "run/predictions/test.tsv").read_text().splitlines()
    assert -1 <= float(only.split("\t")[1]) <= 1
    assert runs.evaluate(tmp_path / "run") == pytest.approx(metrics, abs=1e-6)


@pytest.mark.slow
def test_a_run_that_was_killed_ends_with_the_same_weights(tmp_path, monkeypatch):
    write_scored(tmp_path)
    path = write_config(tmp_path, "embedding", "path: ., format: tsv", epochs=2)
    # Parts of a batch draw their dropout twice.
    settings = ["train.accumulation_steps=2", "model.hidden_dropout_prob=0.3"]
    config = load_config(path, [*settings, "train.checkpoint_steps=2"])
    metrics = runs.finetune(config, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, 2)
        runs.finetune(config, tmp_path / "run")
    assert runs.finetune(config, tmp_path / "run") == metrics
    check_equal(tmp_path / "run", tmp_path / "whole")


@pytest.mark.end_to_end
def test_a_run_goes_on_with_the_settings_of_an_embedder(tmp_path):
    write_scored(tmp_path)
    settings = {"dense": [{"units": 6}], "prompts": {"q": "the "}, "default_prompt": "q"}
    encoder = tiny.encoder()
    pooled = {"pooling": "max", "normalize": True, "include_prompt": False}
    model = bert_tf.TextEmbedder(encoder, tiny.tokenizer(), **pooled, **settings)
    model.save_checkpoint(tmp_path / "first", "sentence_transformers")
    path = write_config(tmp_path, "embedding", "path: ., format: tsv", epochs=1)
    chosen = [
        f"init.checkpoint={tmp_path / 'first'}",
        "model.normalize=false",
        "model.num_hidden_layers=1",
        "train.learning_rate=1e-9",
    ]
    config = load_config(path, chosen)
    runs.finetune(config, tmp_path / "run")
    trained = bert_tf.load(tmp_path / "run")
    expected = dict(model.settings, normalize=False, max_length=config.train.max_length)
    assert trained.settings == expected
    inputs = model.preprocessor()(["the cat", "a dog"])
    vectors = trained(inputs)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors / lengths, model(inputs), atol=1e-5)


def write_beir(folder):
    (folder / "qrels").mkdir(parents=True)
    for name, column in (("corpus", 1), ("queries", 0)):
        rows = [{"_id": f"{name[0]}{i}", "text": pair[column]} for i, pair in enumerate(PAIRS)]
        write_lines(folder / f"{name}.jsonl", map(json.dumps, rows))
    for split in ("train", "dev"):
        lines = [f"q{i}\tc{i}\t1" for i in range(len(PAIRS))]
        write_lines(folder / f"qrels/{split}.tsv", ["query-id\tcorpus-id\tscore", *lines])


@pytest.mark.slow
def test_a_run_learns_to_find_the_passages_of_beir(tmp_path):
    write_beir(tmp_path)
    path = write_config(tmp_path, "embedding", "path: ., format: beir", epochs=8)
    metrics = runs.finetune(load_config(path, ["train.accumulation_steps=2"]), tmp_path / "run")
    assert next(iter(metrics)) == "ndcg@10" and metrics["ndcg@10"] > 0.5
    first, *_ = (tmp_path / "run/predictions/dev.trec").read_text().splitlines()
    assert first.split()[0] == "q0" and first.split()[3] == "1"


def test_beir_is_pairs_to_train_on_and_a_search_to_measure(tmp_path):
    write_beir(tmp_path)
    task = task_of(write_config(tmp_path, "embedding", "path: ., format: beir"))
    rows = task.training_rows()
    assert list(zip(*rows.values, strict=True)) == PAIRS
    (dev,) = task.files("dev").values()
    assert task.read(dev).relevant["q2"] == {"c2": 1}
    assert {path.name for path in task.sources("dev")} == {
        "dev.tsv",
        "corpus.jsonl",
        "queries.jsonl",
    }
    model = model_of(task)
    found = model.infer(task.read(dev))
    task.write_predictions(model, found, task.read(dev), tmp_path, "dev")
    lines = (tmp_path / "dev.trec").read_text().splitlines()
    assert len(lines) == 64 and lines[0].split()[1::4] == ["Q0", "bert_tf"]
    assert task.score(model, found, task.read(dev))["recall@10"] == 1


@pytest.mark.parametrize(
    ("name", "lines", "columns", "form"),
    [
        ("a.tsv", ["sentence1\tsentence2", "a\tb"], (["a"], ["b"]), "texts"),
        ("a.tsv", ["sentence1\tsentence2\tlabel", "a\tb\t1"], (["a"], ["b"]), "scores"),
        ("a.csv", ["negative,anchor,positive", "c,a,b"], (["a"], ["b"], ["c"]), "texts"),
        ("a.jsonl", ['{"query": "a", "positive": "b"}'], (["a"], ["b"]), "texts"),
        ("a.tsv", ["question\tanswer", "a\tb"], (["a"], ["b"]), "texts"),
        ("a.jsonl", ['{"query": "a", "answer": "b"}'], (["a"], ["b"]), "texts"),
        (
            "a.jsonl",
            ['{"query": "a", "positive": "b", "negatives": ["c", "d"]}'],
            (["a"], ["b"], ["c"], ["d"]),
            "texts",
        ),
        ("a.tsv", ["text\tlabel", "a\tx", "b\ty"], (["a", "b"],), "labels"),
        ("a.tsv", ["text", "a", "b"], (["a", "b"],), "texts"),
    ],
)
def test_tables_are_known_by_their_columns(tmp_path, name, lines, columns, form):
    path = write_lines(tmp_path / name, lines)
    rows = files.read(path, path.suffix[1:])
    assert (rows.values, form_of(rows)) == (columns, form)


def test_a_label_of_json_is_named_as_in_python(tmp_path):
    lines = ['{"text": "a", "label": true}', '{"text": "b", "label": false}']
    assert files.read(write_lines(tmp_path / "a.jsonl", lines), "jsonl").targets == [
        "True",
        "False",
    ]


def test_sts_b_of_glue_and_the_original(tmp_path):
    header = (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"
    )
    glue = write_lines(tmp_path / "dev.tsv", [header, "0\tg\tf\ty\t1\ts\ts\ta\tb\t2.500"])
    original = write_lines(tmp_path / "sts-train.csv", ['g\tf\ty\t1\t2.500\ta\t"b\tmore'])
    rows, same = (files.read(path, "sts-b") for path in (glue, original))
    assert rows.values == (["a"], ["b"]) and same.values == (["a"], ['"b'])
    assert rows.targets == same.targets == [0.5]
    assert files.find_file(tmp_path, "sts-b", "train") == original
    assert files.find_file(tmp_path, "sts-b", "dev") == glue


def test_nli_gives_triples(tmp_path):
    lines = ["sentence1\tsentence2\tgold_label"]
    lines += ["a\tb\tentailment", "a\tc\tcontradiction", "a\td\tentailment", "a\te\tneutral"]
    path = write_lines(tmp_path / "train.tsv", [*lines, "f\tg\tentailment"])
    assert files.read(path, "nli").values == (["a", "a"], ["b", "d"], ["c", "c"])
    write_mnli(tmp_path)
    with pytest.raises(UserError, match="no premise with both an entailed and a contradicting"):
        files.read(tmp_path / "train.tsv", "nli")


def test_triples_of_triples(tmp_path):
    path = write_lines(tmp_path / "train.tsv", ["q\tp\tn", 'q2\t"p2\tn2'])
    rows = files.read(path, "triples")
    assert rows.values == (["q", "q2"], ["p", '"p2'], ["n", "n2"])


@pytest.mark.parametrize(
    ("file_format", "lines", "message"),
    [
        ("tsv", ["a\tb", "c\td"], "line 2: no text columns; name them sentence1"),
        (
            "tsv",
            ["sentence1\tsentence2\tscore", "a\tb\tx"],
            "line 2: score is 'x', not a finite number",
        ),
        ("tsv", ["text"], "has no rows"),
        (
            "jsonl",
            ['{"query": "a", "positive": "b", "negatives": "c"}'],
            "line 1: negatives must be a list of texts",
        ),
        (
            "jsonl",
            [
                '{"query": "a", "positive": "b", "negatives": ["c"]}',
                '{"query": "a", "positive": "b"}',
            ],
            "line 2: no negatives 1, unlike earlier rows",
        ),
        (
            "jsonl",
            [
                '{"query": "a", "positive": "b"}',
                '{"query": "a", "positive": "b", "negatives": ["c"]}',
            ],
            "line 2: more texts than in earlier rows",
        ),
        (
            "triples",
            ["a\tb"],
            "line 1: 2 fields; a triple has 3, and the file has no header: query, positive, neg",
        ),
        ("sts-b", ["a\tb"], "line 1: 2 fields; the STS benchmark has genre"),
    ],
)
def test_mistakes_in_files_are_reported_with_their_line(tmp_path, file_format, lines, message):
    path = write_lines(tmp_path / "train", lines)
    with pytest.raises(UserError, match=message):
        files.read(path, file_format)


def test_mistakes_in_the_configuration(tmp_path):
    write_lines(tmp_path / "train.tsv", ["sentence1\tsentence2\tscore", "a\tb\t3"])
    write_lines(tmp_path / "dev.tsv", ["text", "a"])
    path = write_config(tmp_path, "embedding", "path: ., format: tsv")
    assert load_config(path).train.group_by_length is False
    task = task_of(path)
    assert np.isclose(task.training_rows().targets, 3).all()
    (dev,) = task.files("dev").values()
    for settings, message in [
        (["loss.name=cosine_regression"], "takes scores from -1 to 1, but score 0 is 3"),
        (["loss.name=multiple_negatives_ranking"], "but the data are pairs with scores"),
        (["loss.name=cosent", "loss.margin=2"], "loss.margin is for the loss online_contrastive"),
        (["data.format=conll"], "unknown data.format 'conll'; choose one of tsv, csv, jsonl"),
    ]:
        with pytest.raises(UserError, match=message):
            task_of(path, settings).training_rows()
    with pytest.raises(UserError, match="dev.tsv has only texts, so there is nothing to"):
        task.read(dev)
    write_lines(tmp_path / "train.tsv", ["anchor\tpositive", "a\tb"])
    task = task_of(path, ["train.batch_size=1"])
    task.training_rows()
    with pytest.raises(UserError, match="but a batch has 1 row"):
        task.compile(model_of(task), optimizer="sgd")
