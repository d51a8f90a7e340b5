"""Labels of a row are a list, a text that joins them, or a column for each; no other way."""

from pathlib import Path

import numpy as np
import pytest

from bert_tf.config.reading import load_config
from bert_tf.data.targets import Labels
from bert_tf.errors import UserError
from bert_tf.tasks.multi_label_classification import MultiLabelRun
from bert_tf.tasks.multi_label_classification.run import MultiLabelClassification

TEXTS = ["it came late", "lovely", "cold and late"]
LABELS = [("late",), (), ("cold", "late")]
WAYS = {
    "lists": (
        "x.jsonl",
        {},
        '{"text": "it came late", "label": ["late"]}\n'
        '{"text": "lovely", "label": []}\n'
        '{"text": "cold and late", "label": ["cold", "late"]}\n',
    ),
    "joined": (
        "x.tsv",
        {},
        "text\tlabel\nit came late\tlate\nlovely\t\ncold and late\tcold, late\n",
    ),
    "other separator": (
        "x.csv",
        {"label_separator": ";"},
        "text,label\nit came late,late\nlovely,\ncold and late,cold;late\n",
    ),
    "columns": (
        "x.csv",
        {"label_columns": ("cold", "late")},
        "text,cold,late\nit came late,0,1\nlovely,0,0\ncold and late,1,true\n",
    ),
    "columns in objects": (
        "x.jsonl",
        {"label_columns": ("cold", "late")},
        '{"text": "it came late", "cold": 0, "late": 1}\n'
        '{"text": "lovely", "cold": false, "late": false}\n'
        '{"text": "cold and late", "cold": true, "late": 1}\n',
    ),
}


def rows_of(folder: Path, name: str, text: str, needs_labels: bool = True, **settings):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    data = {"path": str(folder), "format": path.suffix[1:], **settings}
    train = {"steps": 1, "max_length": 16, "batch_size": 1}
    of_run = {"task": "multi_label_classification", "init": {"checkpoint": "any"}}
    config = MultiLabelRun(**of_run, data=data, train=train)
    task = MultiLabelClassification(config)
    task.needs_labels = lambda path: needs_labels
    return task._read(path)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_labels_gives_the_same_rows(tmp_path, way):
    name, settings, text = WAYS[way]
    rows = rows_of(tmp_path, name, text, **settings)
    assert [*rows.values[0]] == TEXTS
    assert rows.targets == LABELS
    assert Labels().found_in(rows) == ("cold", "late")
    numbers = Labels(("cold", "late")).numbers(rows)
    np.testing.assert_array_equal(numbers, [[0, 1], [0, 0], [1, 1]])


@pytest.mark.parametrize(
    ("name", "settings", "text"),
    [
        ("x.jsonl", {}, '{"text": "a"}\n{"text": "b"}\n'),
        ("x.tsv", {}, "text\na\nb\n"),
        ("x.csv", {"label_columns": ("cold",)}, "text\na\nb\n"),
    ],
)
def test_texts_without_labels_are_predicted_only(tmp_path, name, settings, text):
    assert rows_of(tmp_path, name, text, needs_labels=False, **settings).targets is None
    with pytest.raises(
        UserError, match="no (column )?'(label|cold)'; (there|the columns) are 'text'"
    ):
        rows_of(tmp_path, name, text, **settings)


@pytest.mark.parametrize(
    ("name", "settings", "text", "said"),
    [
        (
            "x.jsonl",
            {},
            '{"text": "a", "label": "late"}\n',
            "line 1: labels is 'late'; give a list of labels, which may be empty",
        ),
        (
            "x.jsonl",
            {},
            '{"text": "a", "label": [null]}\n',
            "line 1: labels, one of them, is missing",
        ),
        ("x.jsonl", {}, '{"text": "a", "label": ["b", "b"]}\n', "the label 'b' occurs twice"),
        ("x.tsv", {}, "text\tlabel\na\tb,,c\n", "line 2: one of the labels is empty; remove it"),
        (
            "x.csv",
            {"label_columns": ("cold",)},
            "text,cold\na,\n",
            "line 2: the column cold contains ''; write 0 or 1",
        ),
        ("x.csv", {"label_columns": ("cold", "late")}, "text,cold\na,1\n", "no column 'late'"),
    ],
)
def test_what_cannot_be_labels_is_named_with_its_line(tmp_path, name, settings, text, said):
    with pytest.raises(UserError, match=said):
        rows_of(tmp_path, name, text, **settings)


def test_a_row_without_labels_among_others_is_named(tmp_path):
    text = '{"text": "a", "label": ["b"]}\n{"text": "c"}\n'
    with pytest.raises(
        UserError,
        match="line 2: labels is missing, but other rows have one; give all rows one, or none",
    ):
        rows_of(tmp_path, "x.jsonl", text, needs_labels=False)


def test_a_file_in_which_no_row_has_a_label_teaches_nothing(tmp_path):
    rows = rows_of(tmp_path, "x.tsv", "text\tlabel\na\t\n")
    with pytest.raises(UserError, match="no row has a label; label some rows to train"):
        Labels().found_in(rows)


def test_a_label_that_training_did_not_have_is_named(tmp_path):
    rows = rows_of(tmp_path, *WAYS["joined"][::2])
    with pytest.raises(UserError, match="line 4: label 'cold' is unknown; the labels are late"):
        Labels(("late",)).numbers(rows)


def test_whole_numbers_sort_as_numbers(tmp_path):
    rows = rows_of(tmp_path, "x.jsonl", '{"text": "a", "label": [10, 9]}\n')
    assert Labels().found_in(rows) == ("9", "10")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            "label_column: x, label_columns: [a]",
            "data.label_column and data.label_columns cannot both be set",
        ),
        ("label_separator: ''", "data.label_separator must not be empty"),
    ],
)
def test_keys_that_exclude_each_other_are_refused(tmp_path, settings, said):
    path = tmp_path / "run.yaml"
    path.write_text(
        f"task: multi_label_classification\ndata: {{path: ., format: csv, {settings}}}\n"
        "tokenizer: {vocab: vocab.txt}\n"
    )
    with pytest.raises(UserError, match=said):
        load_config(path)
