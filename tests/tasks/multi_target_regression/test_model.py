"""Several numbers are learned of a text, from lists, columns by name, datasets and files."""

import json

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.tasks.multi_target_regression.run import MultiTargetRegression
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal
from tests.tasks.tiny_texts import write_config, write_lines

TEXTS = ["cat", "dog", "the cat sat", "a dog ran"] * 3
NUMBERS = [[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [0.0, 2.0]] * 3
NAMES = ("price", "size")


def regressor(**settings):
    return tiny.regressor(targets=NAMES, **settings)


@pytest.fixture(scope="module")
def trained():
    model = regressor()
    model.fit(TEXTS, NUMBERS, epochs=30, learning_rate=1e-2, verbose=0)
    return model


def test_it_predicts_a_number_for_each_target(trained):
    assert type(trained).__name__ == "MultiTargetRegressor"
    cat, dog = trained.predict(["cat", "dog"])
    assert list(cat) == list(dog) == [*NAMES]
    assert cat["price"] > 0.5 > dog["price"] and dog["size"] > 1 > cat["size"]


def test_the_metrics_are_means_and_those_of_each_target(trained):
    metrics = trained.evaluate(TEXTS, NUMBERS)
    assert list(metrics)[:3] == ["spearman", "pearson", "loss"]
    for name in ("spearman", "pearson", "loss"):
        expected = np.mean([metrics[f"{name}_{target}"] for target in NAMES])
        assert metrics[name] == pytest.approx(expected)


def test_numbers_come_as_rows_arrays_columns_or_a_dataset():
    model = regressor()
    columns = {"size": [row[1] for row in NUMBERS], "price": [row[0] for row in NUMBERS]}
    rows = [dict(zip(NAMES, row, strict=True)) for row in NUMBERS]
    for y in (NUMBERS, np.array(NUMBERS), columns, rows):
        np.testing.assert_array_equal(model.examples(model.given(TEXTS, y)).targets, NUMBERS)
    for y in (np.array(NUMBERS, np.float32), columns):
        _, numbers = model.encode((tf.constant(TEXTS),), tf.nest.map_structure(tf.constant, y))
        np.testing.assert_array_equal(numbers, NUMBERS)
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, np.array(NUMBERS))).batch(4)
    assert np.isfinite(model.fit(dataset, verbose=0).history["loss"]).all()


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([[1.0]], "numbers 0 has 1 numbers, but the targets are price, size"),
        ([1.0], "numbers 0 is 1.0; give 2 numbers"),
        ([[1, "x"]], "numbers 0, size, is 'x', not a finite number"),
        ([{"price": 1}], "numbers 0 has no 'size'; give price, size"),
        ({"price": [1]}, "y has no 'size'; give price, size"),
        ([None], "numbers 0 is missing, but other rows have one; give all rows one, or none"),
    ],
)
def test_other_numbers_are_refused(y, said):
    assert refusal(regressor().fit, ["cat"], y) == said


def test_targets_have_names():
    said = "the label 'a' occurs 2 times; give each class its own label"
    assert refusal(tiny.regressor, targets=["a", "a"]) == said


def write_files(folder, names=("train", "dev")):
    for name in names:
        lines = [f"{text}\t{a}\t{b}" for text, (a, b) in zip(TEXTS, NUMBERS, strict=True)]
        write_lines(folder / f"{name}.tsv", ["text\tprice\tsize", *lines])
    data = "path: ., format: tsv, label_columns: [price, size]"
    return write_config(folder, "multi_target_regression", data, epochs=1)


@pytest.mark.end_to_end
def test_a_run_writes_a_column_for_each_target(tmp_path):
    write_files(tmp_path)
    write_lines(tmp_path / "test.tsv", ["text", "cat"])
    metrics = runs.finetune(load_config(tmp_path / "config.yaml"), tmp_path / "run")
    assert json.loads((tmp_path / "run/metrics.json").read_text()) == metrics
    header, *rows = (tmp_path / "run/predictions/dev.tsv").read_text().splitlines()
    assert header == "index\tprice\tsize" and len(rows) == 12
    assert runs.evaluate(tmp_path / "run") == pytest.approx(metrics, abs=1e-5)
    answer = bert_tf.load(tmp_path / "run").predict("cat")
    _, price, size = (tmp_path / "run/predictions/test.tsv").read_text().split()[3:]
    assert (float(price), float(size)) == pytest.approx((*answer.values(),), abs=1e-4)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cat\t1\thigh", "train.tsv, line 14: numbers, size, is 'high', not a finite number"),
        ("cat\t1", "train.tsv, line 14: 2 fields, but the header has 3"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_line(tmp_path, line, said):
    path = write_files(tmp_path)
    with (tmp_path / "train.tsv").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(UserError, match=said):
        MultiTargetRegression(load_config(path)).training_rows()


@pytest.mark.parametrize("form", ["keras", "bert_tf", "huggingface"])
def test_files_hold_the_names(trained, tmp_path, form):
    path = tmp_path / ("model.keras" if form == "keras" else "checkpoint")
    trained.save(path) if form == "keras" else trained.save_checkpoint(path, form)
    assert bert_tf.load(path).predict("cat") == pytest.approx(trained.predict("cat"), abs=1e-6)


def test_several_numbers_of_transformers_are_opened(trained, tmp_path):
    """As transformers writes them, whose labels may name the numbers."""
    trained.save_checkpoint(tmp_path / "theirs", "huggingface")
    path = tmp_path / "theirs/config.json"
    fields = json.loads(path.read_text())
    assert fields["problem_type"] == "regression" and len(fields["id2label"]) == 2
    for names, expected in (
        ({"0": "LABEL_0", "1": "LABEL_1"}, ["target_0", "target_1"]),
        ({"0": "a", "1": "b"}, ["a", "b"]),
    ):
        theirs = {name: value for name, value in fields.items() if name != "bert_tf"}
        path.write_text(json.dumps(theirs | {"id2label": names}))
        assert list(bert_tf.load(tmp_path / "theirs").predict("cat")) == expected
