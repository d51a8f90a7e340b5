"""Taggers learn, fine-tuned and feature-based, and are scored on the words of the file."""

import dataclasses
import json

import keras
import numpy as np
import pytest

from bert_tf import Encoder, TokenClassifier, load, runs
from bert_tf.checkpoints import reading
from bert_tf.config.reading import load_config
from bert_tf.data import tfds as data_sets
from bert_tf.data.columns import Columns
from bert_tf.errors import UserError
from bert_tf.tasks import from_checkpoint
from bert_tf.tasks.token_classification import tagged_sentences
from bert_tf.tasks.token_classification.conll import read_conll
from bert_tf.tasks.token_classification.metrics import entity_metrics
from bert_tf.tasks.token_classification.run import TokenClassification
from bert_tf.tasks.token_classification.tagged_sentences import texts_of
from tests import tiny, tiny_tags
from tests.fixtures import make_conlleval
from tests.tasks.tiny_tasks import examples_of, model_of


def task_of(path, settings=()) -> TokenClassification:
    return TokenClassification(load_config(path, settings))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of the data and of a run, and what the run returned."""
    folder = tmp_path_factory.mktemp("tagging")
    config = load_config(tiny_tags.write_tagging(folder), ["model.num_hidden_layers=1"])
    return folder, runs.finetune(config, folder / "run")


def test_a_tagger_learns(trained):
    folder, metrics = trained
    run = folder / "run"
    assert metrics["f1"] == metrics["f1_animal"] == metrics["f1_place"] == 1.0
    assert json.loads((run / "metrics.json").read_text()) == metrics
    assert reading.find(run).description.labels == tuple(tiny_tags.LABELS)
    assert runs.evaluate(run) == pytest.approx(metrics, abs=1e-6)
    expected = read_conll(folder / "dev.conll")
    for column in (1, 2):
        written = read_conll(run / "predictions" / "dev.conll", tag_column=column)
        assert (written.values, written.targets) == (expected.values, expected.targets)


@pytest.mark.slow
def test_only_what_is_on_top_learns_when_the_encoders_features_are_used(trained):
    folder, _ = trained
    settings = ["model.features=last", "model.lstm_units=8", f"init.checkpoint={folder / 'run'}"]
    run = folder / "feature_based"
    metrics = runs.finetune(load_config(folder / "tagging.yaml", settings), run)
    assert metrics["f1"] > 0.9
    checkpoint, before = reading.find(run), reading.find(folder / "run")
    model, started = (from_checkpoint.build(each, each.folder) for each in (checkpoint, before))
    assert isinstance(model, TokenClassifier)
    assert (model.features, model.head["lstm_units"]) == ("last", 8)
    checkpoint.fill(model)
    before.fill(started)
    for old, new in zip(started.encoder.weights, model.encoder.weights, strict=True):
        np.testing.assert_array_equal(old, new, err_msg=old.path)
    assert runs.evaluate(run) == pytest.approx(metrics, abs=1e-6)


def test_predictions_are_written_in_columns_and_score_as_they_did(tmp_path):
    task = task_of(tiny_tags.write_tagging(tmp_path))
    task.training_rows()
    model, data = model_of(task), task.read(tmp_path / "dev.conll")
    words = sum(map(len, data.column("words")))
    logits = np.random.default_rng(0).normal(size=(words, 5)).astype(np.float32)
    # Half of the words get the right label.
    labels = [task.labels.index(tag) for tags in data.targets for tag in tags]
    logits[np.arange(0, words, 2), labels[::2]] += 9.0
    task.write_predictions(model, logits, data, tmp_path, "dev_predicted")
    written = tmp_path / "dev_predicted.conll"
    assert {len(line.split(" ")) for line in written.read_text().splitlines() if line} == {3}
    columns = [
        read_conll(written, tag_column=column, lenient_tags=True).targets for column in (1, 2)
    ]
    metrics = task.score(model, logits, data)
    again = entity_metrics(*columns, types=["animal", "place"])
    assert 0 < metrics["f1"] < 1
    # Accuracy is about the tags as predicted, but reading repairs them.
    for metric in again.keys() - {"accuracy"}:
        assert metrics[metric] == pytest.approx(again[metric])
    exponents = np.exp(logits)
    loss = -np.log(exponents[np.arange(words), labels] / exponents.sum(axis=1)).mean()
    assert metrics["loss"] == pytest.approx(loss, abs=1e-5)


def test_words_without_tags_are_tagged_and_not_scored(trained, tmp_path):
    folder, _ = trained
    words = tmp_path / "words.conll"
    words.write_text("the\ncat\nbird\n\nsea\n")
    assert runs.evaluate(folder / "run", words) == {}
    written = (folder / "run" / "predictions" / "words.conll").read_text()
    lines = [line.split(" ") for line in written.splitlines()]
    assert [line[0] for line in lines] == ["the", "cat", "bird", "", "sea"]
    assert {len(line) for line in lines if line != [""]} == {2}
    assert {line[1] for line in lines if line != [""]} <= set(tiny_tags.LABELS)


def test_conlleval_scores_the_written_file_as_we_do(tmp_path):
    """The file is the one that conlleval was given, and the metrics are what it said of it."""
    gold, predicted = make_conlleval.random_tags()
    task = task_of(tiny_tags.write_tagging(tmp_path))
    task.labels = tuple(sorted(set(make_conlleval.TAGS)))
    data = Columns(("words",), ([["w"] * len(tags) for tags in gold],), list(map(tuple, gold)))
    model = model_of(task)
    best = [task.labels.index(tag) for tags in predicted for tag in tags]
    logits = np.eye(len(task.labels), dtype=np.float32)[best]
    task.write_predictions(model, logits, data, tmp_path, "dev")
    assert (tmp_path / "dev.conll").read_text() == make_conlleval.told()
    figures = json.loads(make_conlleval.FIGURES.read_text())
    metrics = task.score(model, logits, data)
    for kind, expected in figures.items():
        name = "f1" if kind == "all" else f"f1_{kind}"
        # The script prints percent with two decimals.
        assert 100 * metrics[name] == pytest.approx(expected["FB1"], abs=0.0051)


def test_columns_are_parted_as_in_the_data(tmp_path):
    """So tabs for WNUT-17, whose own script splits at them; a type may then have a space."""
    path = tiny_tags.write_tagging(tmp_path)
    for name in ("train", "dev"):
        file = tmp_path / f"{name}.conll"
        parted = file.read_text().replace(" ", "\t").replace("animal", "wild animal")
        file.write_text(parted)
    task = task_of(path)
    task.training_rows()
    model, data = model_of(task), task.read(tmp_path / "dev.conll")
    words = sum(map(len, data.column("words")))
    task.write_predictions(
        model, np.eye(len(task.labels))[[1] * words], data, tmp_path, "predicted"
    )

    written = read_conll(tmp_path / "predicted.conll", tag_column=1)
    assert written.targets == data.targets
    lines = (tmp_path / "predicted.conll").read_text().splitlines()
    assert {line.split("\t")[2] for line in lines if line} == {"B-place"}
    assert any("\tB-wild animal\t" in line for line in lines)


def test_the_progress_of_tagging_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("bert_tf.console._SHORT_SECONDS", 0.0)
    task = task_of(tiny_tags.write_tagging(tmp_path))
    task.training_rows()
    model_of(task).infer(task.read(tmp_path / "dev.conll"), batch_size=4)
    assert "tagging: 9/9" in capsys.readouterr().err


def test_documents_are_read_as_one_text_and_scored_by_sentence(tmp_path):
    path = tiny_tags.write_tagging(tmp_path)
    alone, together = task_of(path), task_of(path, ["data.document_context=true"])
    windows, longer = examples_of(alone), examples_of(together)
    assert len(windows.lengths) >= 48 and windows.lengths.mean() < 16
    assert longer.lengths.mean() > 20
    # Each of the words has its label once, either way.
    labels, others = (each.encoded.others["labels"] for each in (windows, longer))
    assert sorted(labels[labels >= 0]) == sorted(others[others >= 0])
    data = together.read(tmp_path / "dev.conll")
    assert len(texts_of(data)) == 3 and len(data) == 9
    # The text goes on after a sentence, but no entity does.
    tags = [("B-animal", "I-animal"), ("B-animal",)]
    data = Columns(("words",), ([["cat", "bird"], ["bird"]],), tags, ids=[1, 1])
    assert texts_of(data) == [["cat", "bird", "bird"]]
    logits = np.eye(5, dtype=np.float32)[[1, 2, 2]]
    assert together.score(model_of(together), logits, data)["f1"] == 1.0


def test_mock_data_of_tfds_are_read_and_learned_from(tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")

    def load_split(name: str, split: str):
        rows, features = data_sets.load_split(name, split)
        # The lists of TFDS's own mock data have different sizes.
        names = [name for name in ("tokens", "ner") if name in features]
        return (
            {name: row[name][: min(len(row[each]) for each in names)] for name in names}
            for row in rows
        ), features

    monkeypatch.setattr(tagged_sentences, "load_split", load_split)
    settings = ["data.format=tfds", "data.path=conll2003", "train.max_length=32"]
    path = tiny_tags.write_tagging(tmp_path)
    with tfds.testing.mock_data(num_examples=4):
        task = task_of(path, [*settings, "data.lenient_tags=true"])
        examples = examples_of(task)
        (dev,) = task.files("dev").values()
        data = task.read(dev)
        strict = task_of(path, settings)
        with pytest.raises(UserError, match="TFDS conll2003, split train, row .*, word .* after"):
            strict.training_rows()
        with pytest.raises(UserError, match="TFDS glue/cola, split train: no feature tokens or w"):
            task_of(path, [*settings, "data.path=glue/cola"]).training_rows()
    assert task.labels[:3] == ("O", "B-LOC", "I-LOC")
    assert (examples.encoded.others["labels"] >= 0).any() and len(data) <= 4


def test_training_rows_are_sentences(tmp_path):
    path = tiny_tags.write_tagging(tmp_path)
    examples = examples_of(task_of(path, ["data.train_rows=2", "train.max_length=32"]))
    sentences = read_conll(tmp_path / "train.conll").first(2)
    labels = examples.encoded.others["labels"]
    assert (labels >= 0).sum() == sum(map(len, sentences.column("words")))


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("tags", "entities"),
    [
        pytest.param(
            ("O", "I-pet", "I-pet", "I-log"),
            {("pet", "cat dog"), ("log", "log")},
            marks=pytest.mark.slow,
        ),
        (("O", "pet", "pet", "log"), {("pet", "cat dog"), ("log", "log")}),
        pytest.param(
            ("o", "b_pet", "i_pet", "b_log"),
            {("pet", "cat dog"), ("log", "log")},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("DET", "NOUN", "NOUN", "X"),
            {("DET", "the"), ("NOUN", "cat dog"), ("X", "log")},
            marks=pytest.mark.slow,
        ),
    ],
    ids=["iob1", "plain", "underscores", "parts_of_speech"],
)
def test_a_model_answers_in_the_tags_that_it_learned(tags, entities, tmp_path):
    words = ["the", "cat", "dog", "log"]
    keras.utils.set_random_seed(0)
    config = tiny.encoder_config(16, initializer_range=0.1, **tiny.NO_DROPOUT)
    model = TokenClassifier(Encoder(config), tiny.tokenizer(), max_length=16)
    model.fit([words] * 8, [tags] * 8, epochs=40, batch_size=8, learning_rate=0.02, verbose=0)
    assert set(model.labels) == set(tags)
    assert model.predict(words=words) == list(tags)
    metrics = model.evaluate([words], [tags])
    types = {f"f1_{kind}" for kind, _ in entities}
    assert {*metrics} == {"f1", "precision", "recall", "accuracy", "loss"} | types
    assert metrics["f1"] == metrics["accuracy"] == 1.0
    model.export(tmp_path / "model.tflite", format="litert")
    asked = [model, load(tmp_path / "model.tflite")]
    if tags[0] == "O":
        model.export(tmp_path / "exported")
        asked.append(load(tmp_path / "exported"))
    for each in asked:
        found = each.predict("the cat dog log")
        assert {(entity["type"], entity["text"]) for entity in found} == entities
        assert each.predict(words=words) == list(tags)


def test_sets_without_prefixes_are_scored_by_entity_and_parts_of_speech_by_word():
    """As seqeval, nervaluate 0.2 and conlleval do for the same words with B- and I-."""
    model = TokenClassifier(Encoder(tiny.encoder_config()), tiny.tokenizer(), ["O", "A", "B"])
    rows = Columns(("words",), ([["w"] * 5],), [("A", "A", "O", "B", "B")])
    logits = np.eye(3, dtype=np.float32)[[1, 1, 0, 2, 0]]
    found = model.official_metrics(logits, rows)
    iob2 = [["B-A", "I-A", "O", "B-B", "I-B"]], [["B-A", "I-A", "O", "B-B", "O"]]
    expected = entity_metrics(*iob2, ["A", "B"])
    assert expected["f1"] == 0.5 and {name: found[name] for name in expected} == expected
    # Gold tags may have another form than the labels.
    assert model.official_metrics(logits, dataclasses.replace(rows, targets=iob2[0])) == found

    model = TokenClassifier(Encoder(tiny.encoder_config()), tiny.tokenizer(), ["A", "B", "C"])
    rows = dataclasses.replace(rows, targets=[("A", "A", "C", "B", "B")])
    found = model.official_metrics(np.eye(3)[[0, 0, 2, 1, 0]], rows)
    assert found["f1"] == pytest.approx(found["accuracy"]) == pytest.approx(0.8)
    # Two of three predicted A are right, and both true A were found.
    assert (found["f1_A"], found["f1_C"]) == (pytest.approx(0.8), 1.0)


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "tag",
    [
        pytest.param("animal", marks=pytest.mark.slow),
        "b_animal",
        pytest.param("NN", marks=pytest.mark.slow),
    ],
)
def test_files_may_have_tags_in_any_form(tmp_path, tag):
    path = tiny_tags.write_tagging(tmp_path)
    (tmp_path / "train.conll").write_text(f"the O\ncat {tag}\n\ndog {tag}\n" * 8)
    (tmp_path / "dev.conll").write_text(f"the O\ndog {tag}\n")
    (tmp_path / "test.conll").unlink()
    metrics = runs.finetune(load_config(path), tmp_path / "run")
    assert metrics["f1"] == metrics[f"f1_{tag.removeprefix('b_')}"] == 1.0
    assert (tmp_path / "run/predictions/dev.conll").read_text() == f"the O O\ndog {tag} {tag}\n"


def test_types_are_those_of_the_whole_file_however_few_rows_are_used(tmp_path):
    path = tiny_tags.write_tagging(tmp_path)
    (tmp_path / "train.conll").write_text("the O\ncat B-X\n\nthe O\ndog B-Y\n")
    task = task_of(path, ["data.train_rows=1"])
    assert len(examples_of(task).lengths) == 1
    assert task.labels == ("O", "B-X", "I-X", "B-Y", "I-Y")


@pytest.mark.parametrize(
    ("split", "content", "settings", "message"),
    [
        ("dev", "the O\ncat B-fruit\n", [], r"line 2: entities of type 'fruit' are not in the tr"),
        ("train", "the O\n", [], "all tags are O; tag some entities"),
        ("dev", "the\ncat\n", [], "line 1: the words and the tags are the same column"),
        (
            "train",
            "cat I-animal\n\nthe O\ncat B-animal\ndog B-animal\n",
            [],
            "line 1: I-animal after O",
        ),
        ("train", "cat B-x\n", ["data.document_context=true"], "no -DOCSTART- lines"),
        (
            "train",
            "cat B-x\n",
            ["data.format=tsv"],
            "unknown data.format 'tsv'; choose one of conll, spans, parquet, datasets, tfds",
        ),
    ],
)
def test_mistakes_are_named(tmp_path, split, content, settings, message):
    path = tiny_tags.write_tagging(tmp_path)
    (tmp_path / f"{split}.conll").write_text(content)
    settings = [*settings, "data.train=train.conll", "data.dev=dev.conll"]
    with pytest.raises(UserError, match=message):
        runs.finetune(load_config(path, settings), tmp_path / "run")
