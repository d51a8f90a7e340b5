"""Rows of TensorFlow Datasets by name, with TFDS's own mock data."""

import sys

import numpy as np
import pytest

from bert_tf.data.columns import TextColumn
from bert_tf.data.targets import Label
from bert_tf.data.tfds import load_split
from bert_tf.errors import UserError
from bert_tf.tasks.texts import text_files
from bert_tf.tasks.texts.text_files import read_tfds, tfds_glue_task
from tests.data.prepared_tfds import cut_off, prepare

tfds = pytest.importorskip("tensorflow_datasets")


@pytest.fixture
def mock():
    with tfds.testing.mock_data(num_examples=6):
        yield


def labels_by_number(name, split) -> list:
    """The labels of a set of GLUE, in the order of the rows' official numbers."""
    return [row["label"] for row in sorted(load_split(name, split)[0], key=lambda row: row["idx"])]


def test_the_names_of_a_class_label_are_the_classes(mock):
    rows = read_tfds("glue/mnli", "validation_matched", ("premise", "hypothesis"), "label")
    assert rows.classes == ("entailment", "neutral", "contradiction")
    assert [len(column) for column in rows.values] == [6, 6]
    assert Label(rows.classes).numbers(rows).tolist() == labels_by_number(
        "glue/mnli", "validation_matched"
    )
    assert rows.where(2) == "TFDS glue/mnli, split validation_matched, row 3"


def test_numbers_and_sets_beyond_glue(mock):
    scores = read_tfds("glue/stsb", "train", ("sentence1", "sentence2"), "label")
    np.testing.assert_array_equal(scores.targets, labels_by_number("glue/stsb", "train"))
    reviews = read_tfds("imdb_reviews", "train", ("text",), "label")
    assert reviews.classes == ("neg", "pos")


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("glue/mnli", "mnli"),
        ("glue/mnli:2.0.0", "mnli"),
        ("glue/stsb/2.0.0", "stsb"),
        ("glue", ""),
        ("super_glue/rte", ""),
        ("/data/glue/mnli", ""),
    ],
)
def test_which_task_of_glue_a_name_is(name, task):
    assert tfds_glue_task(name) == task


def rows_with(monkeypatch, labels, **features):
    """Makes TFDS give one text a row with these labels."""
    rows = [{"text": f"é{i}".encode(), "label": label} for i, label in enumerate(labels)]
    monkeypatch.setattr(text_files, "load_split", lambda *_: (rows, {"text": None} | features))


def test_minus_one_is_no_label(monkeypatch, capsys):
    classes = tfds.features.ClassLabel(names=["no", "yes"])
    rows_with(monkeypatch, [-1, -1], label=classes)
    assert read_tfds("x", "test", ("text",), "label").targets is None
    rows_with(monkeypatch, [1, -1, 0], label=classes)
    rows = read_tfds("x", "train", ("text",), "label")
    assert (rows.targets, rows.values) == (["yes", "no"], (["é0", "é2"],))
    told = capsys.readouterr().err
    assert told == "warning: TFDS x, split train: rows skipped because they have no label: 1\n"
    # For a score, -1 is a number, except in GLUE.
    rows_with(monkeypatch, [np.float32(-1), np.float32(-1)], label=None)
    assert read_tfds("x", "train", ("text",), "label").targets == [-1.0, -1.0]
    assert read_tfds("glue/stsb", "test", ("text",), "label").targets is None


def test_rows_of_glue_come_in_the_order_of_the_official_file(monkeypatch):
    rows = [{"text": f"row {n}".encode(), "label": 0, "idx": np.int32(n)} for n in (2, 0, 1)]
    features = dict.fromkeys(("text", "label", "idx"))
    monkeypatch.setattr(text_files, "load_split", lambda *_: (rows, features))
    glue = read_tfds("glue/cola", "test", ("text",), "label")
    assert glue.values == (["row 0", "row 1", "row 2"],)
    # In other data sets, the meaning of `idx` is not known.
    other = read_tfds("x", "test", ("text",), "label")
    assert other.values == (["row 2", "row 0", "row 1"],)


def test_a_damaged_file_is_told_in_one_line(tmp_path):
    examples = [{"text": f"text {n}", "label": n % 2} for n in range(10)]
    folder = str(cut_off(prepare(tmp_path / "tiny", examples)))
    with pytest.raises(UserError, match="tiny, split train cannot be read .*; delete") as error:
        read_tfds(folder, "train", ("text",), "label")
    assert "\n" not in str(error.value)


def test_mistakes_are_told_in_one_line(mock, monkeypatch):
    with pytest.raises(UserError, match="no feature 'text'; the features are .*premise"):
        read_tfds("glue/mnli", "train", ("text",), "label")
    with pytest.raises(UserError, match="the feature 'idx' is not a text"):
        read_tfds("glue/mnli", "train", ("idx",), "label")
    with pytest.raises(
        UserError, match="TFDS has no data set no_such_set; check data.path"
    ) as error:
        read_tfds("no_such_set", "train", ("text",), "label")
    assert "\n" not in str(error.value)
    rows_with(monkeypatch, [], label=None)
    with pytest.raises(UserError, match="TFDS x, split train has no rows"):
        read_tfds("x", "train", ("text",), "label").checked([TextColumn("text")])


def test_without_tfds_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(
        UserError, match=r"requires the extra tfds .*pip install .*tensorflow-datasets"
    ):
        load_split("glue/mnli", "train")
