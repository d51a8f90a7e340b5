"""A classifier of several labels learns, chooses its thresholds, and keeps them."""

import json

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.cli.parser import main
from bert_tf.tasks import fitting
from bert_tf.tasks.multi_label_classification.model import MultiLabelClassifier
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal
from tests.tasks.tiny_objects import LABEL_LISTS, TEXTS
from tests.tasks.tiny_texts import write_config


@pytest.fixture(scope="module")
def trained():
    model = tiny.multi_labeller()
    model.fit(
        TEXTS,
        LABEL_LISTS,
        epochs=20,
        learning_rate=1e-2,
        seed=0,
        verbose=0,
        validation_data=(TEXTS, LABEL_LISTS),
        validation_freq=20,
    )
    return model


def test_it_is_a_text_classifier(trained):
    assert isinstance(trained, bert_tf.TextClassifier)
    assert type(trained) is MultiLabelClassifier
    assert type(tiny.classifier()) is bert_tf.TextClassifier


def test_it_learns_several_labels_and_none(trained):
    assert trained.labels == ("cat", "dog", "swims")
    found = trained.predict(["the cat swam .", "a dog ran"])
    # The threshold of "swims" is close to its probability in the only such text.
    assert {*found[0]["labels"]} - {"swims"} == {"cat"} and found[1]["labels"] == ["dog"]
    swims = [each["probabilities"]["swims"] for each in found]
    assert swims[0] > swims[1] + 0.2
    for each in found:
        given = [each["probabilities"][name] for name in each["labels"]]
        assert given == sorted(given, reverse=True)
    metrics = trained.evaluate(TEXTS, LABEL_LISTS)
    assert metrics["micro_f1"] > 0.9 and metrics["mean_average_precision"] > 0.9


def test_thresholds_are_chosen_on_the_validation_data(trained):
    metrics = trained.evaluate(TEXTS, LABEL_LISTS)
    thresholds = [metrics[f"threshold_{name}"] for name in trained.labels]
    assert thresholds == list(trained.thresholds)
    model = tiny.multi_labeller(labels=["cat", "dog", "swims"], pair=False)
    assert model.thresholds is None


def test_a_threshold_decides_what_is_given(trained):
    found = trained.predict("a dog ran")["probabilities"]
    # A little below, a little above, and 0.
    limits = [found["cat"] - 1e-3, found["dog"] + 1e-3, 0]
    encoder = trained.encoder
    model = bert_tf.TextClassifier(
        encoder, tiny.tokenizer(), trained.labels, False, multi_label=True, thresholds=limits
    )
    model.classifier.set_weights(trained.classifier.get_weights())
    assert set(model.predict("a dog ran")["labels"]) == {"cat", "swims"}


def test_files_keep_labels_and_thresholds(trained, tmp_path):
    trained.save(tmp_path / "model.keras")
    trained.save_checkpoint(tmp_path / "theirs", "huggingface")
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    assert config["problem_type"] == "multi_label_classification"
    inputs = trained.preprocessor()(tf.constant(["the cat swam ."]))
    for name in ("model.keras", "theirs"):
        model = bert_tf.load(tmp_path / name)
        assert (model.labels, model.thresholds) == (trained.labels, trained.thresholds)
        np.testing.assert_allclose(model(inputs), trained(inputs), atol=1e-6)
    again = bert_tf.TextClassifier.from_checkpoint(tmp_path / "theirs")
    assert type(again) is MultiLabelClassifier and again.thresholds == trained.thresholds


def test_a_checkpoint_that_does_not_say_so_is_opened_as_one(trained, tmp_path):
    trained.save_checkpoint(tmp_path / "theirs", "huggingface")
    config = tmp_path / "theirs" / "config.json"
    fields = json.loads(config.read_text())
    fields = {key: value for key, value in fields.items() if key not in ("problem_type", "bert_tf")}
    config.write_text(json.dumps(fields))
    assert type(bert_tf.load(tmp_path / "theirs")) is bert_tf.TextClassifier
    model = bert_tf.load(tmp_path / "theirs", multi_label=True)
    assert type(model) is MultiLabelClassifier and model.labels == trained.labels
    inputs = trained.preprocessor()(tf.constant(["the cat swam ."]))
    np.testing.assert_allclose(model(inputs), trained(inputs), atol=1e-6)


@pytest.mark.end_to_end
@pytest.mark.parametrize("ragged", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_dataset_of_strings_is_learned_from(ragged):
    model = tiny.multi_labeller(labels=["cat", "dog", "swims"])
    model.compile("sgd", run_eagerly=True)
    names = tf.ragged.constant(LABEL_LISTS, dtype=tf.string)
    y = names if ragged else names.to_tensor("")
    rows = tf.data.Dataset.from_tensor_slices((TEXTS, y)).batch(8)
    (_, targets) = next(iter(fitting.encoded_dataset(model, rows)))
    np.testing.assert_array_equal(targets[:3], [[1, 0, 0], [0, 1, 0], [1, 0, 1]])
    history = model.fit(rows, verbose=0)
    assert np.isfinite(history.history["loss"]).all()


@pytest.mark.slow
def test_two_texts_can_have_several_labels():
    model = tiny.multi_labeller()
    model.fit((TEXTS, TEXTS), LABEL_LISTS, verbose=0)
    assert set(model.predict(("cat", "dog"))) == {"labels", "probabilities"}


def test_mistakes_are_one_sentence(trained, tmp_path):
    make = tiny.multi_labeller
    said = "thresholds has 'bird', but the labels are cat, dog, swims"
    assert refusal(make, labels=trained.labels, thresholds={"bird": 0.5}) == said
    said = "there are 2 thresholds, but 3 labels; give one for each"
    assert refusal(make, labels=trained.labels, thresholds=[0.5, 0.5]) == said
    said = "the threshold for 'cat' is 2; it must be from 0 to 1"
    assert refusal(make, labels=trained.labels, thresholds={"cat": 2}) == said
    texts = TEXTS[:2]
    said = "labels 1 is missing, but other rows have one; give all rows one, or none"
    assert refusal(trained.fit, texts, [["cat"], None]) == said
    assert refusal(trained.fit, texts, ["cat", "dog"]).startswith("labels 0 is 'cat'; give a list")
    assert "row 0: the label 'cat' occurs twice; remove one" in refusal(
        trained.fit, texts, [["cat", "cat"], []]
    )
    said = "row 1: label 'bird' is unknown; the labels are cat, dog, swims"
    assert refusal(trained.evaluate, texts, [["cat"], ["bird"]]) == said
    assert "no row has a label" in refusal(tiny.multi_labeller().fit, texts, [[], []])
    assert "class_weight requires exactly one label per text" in refusal(
        trained.fit, texts, [["cat"], []], class_weight={"cat": 2}
    )
    trained.save(tmp_path / "model.keras")
    said = "the checkpoint gives a text any number of labels; remove multi_label=False"
    assert refusal(bert_tf.load, tmp_path / "model.keras", multi_label=False) == said


@pytest.mark.slow
def test_a_run_is_trained_evaluated_and_exported(tmp_path, capsys):
    for split in ("train", "dev", "test"):
        lines = zip(TEXTS, LABEL_LISTS, strict=True)
        rows = (f"{text}\t{';'.join(labels)}\n" for text, labels in lines)
        (tmp_path / f"{split}.tsv").write_text("text\tlabel\n" + "".join(rows))
    data = 'path: ., format: tsv, label_separator: ";", thresholds: {cat: 0.4}'
    path = write_config(tmp_path, "multi_label_classification", data)
    run = tmp_path / "run"
    assert main(["finetune", str(path), "--out", str(run)]) == 0
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["threshold_cat"] == 0.4 and metrics["threshold_dog"] == 0.5
    predicted = (run / "predictions" / "test.tsv").read_text().splitlines()
    assert predicted[0] == "index\tprediction" and len(predicted) == len(TEXTS) + 1
    capsys.readouterr()
    assert main(["export", str(run), "--out", str(tmp_path / "saved")]) == 0
    assert main(["predict", str(tmp_path / "saved"), "the cat sat"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = bert_tf.load(run).predict("the cat sat")
    assert found["labels"] == expected["labels"]


def test_rows_of_0_and_1_name_their_columns():
    model = tiny.multi_labeller(labels=["cat", "dog"], pair=False)
    named, flags = [["dog"], ["cat", "dog"], []], [[0, 1], [1, 1], [0, 0]]
    rows = TEXTS[:3]
    expected = model.given(rows, named).targets
    dataset = tf.data.Dataset.from_tensor_slices((rows, flags)).batch(3)
    for given in (flags, np.array(flags, np.float32), [[False, True], [True, True], [0.0, 0.0]]):
        assert [*map(tuple, model.given(rows, given).targets)] == [*map(tuple, expected)]
    assert model.evaluate(dataset) == pytest.approx(model.evaluate(rows, named), abs=1e-6)
    # Numbers are names where no class occurs twice in a row.
    model = tiny.multi_labeller(pair=False)
    assert model.given(rows[:2], [[0, 1], [1, 0]]).targets == [("0", "1"), ("1", "0")]
    assert model.given(rows, flags).targets == [("1",), ("0", "1"), ()]
