"""Texts are read as the configuration says; either all rows have labels or none."""

from pathlib import Path

import pytest

from bert_tf.data.targets import Label
from bert_tf.errors import UserError
from bert_tf.tasks.texts import TextData
from bert_tf.tasks.texts.text_files import read, text_columns


def written(path, *lines: str):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def data_of(format: str, **settings) -> TextData:
    return TextData(path=".", format=format, **settings)


def test_a_file_without_labels_has_none(tmp_path):
    lines = ['{"text": "a", "label": null}', '{"text": "b"}']
    rows = read(written(tmp_path / "a.jsonl", *lines), data_of("jsonl"), Label())
    assert (rows.values, rows.targets) == ((["a", "b"],), None)


def test_booleans_whole_floats_and_one_hot_rows_of_json_are_labels_as_in_python(tmp_path):
    for written_labels, expected in (
        (["true", "false"], ["True", "False"]),
        (["1.0", "0"], ["1", "0"]),
        (["[0, 1]", "[1, 0]"], ["1", "0"]),
    ):
        lines = [f'{{"text": "a", "label": {each}}}' for each in written_labels]
        rows = read(written(tmp_path / "a.jsonl", *lines), data_of("jsonl"), Label())
        assert rows.targets == expected
    table = written(tmp_path / "a.csv", "text,label", "a,true", "b,1.0")
    assert read(table, data_of("csv"), Label()).targets == ["true", "1.0"]


def test_a_column_of_empty_labels_is_none_where_labels_are_not_needed(tmp_path):
    path = written(tmp_path / "test.csv", "text,label", "a,", "b, ")
    assert read(path, data_of("csv"), Label()).targets is None
    assert read(path, data_of("csv"), Label(), needs_labels=True).targets == ["", " "]
    some = written(tmp_path / "some.csv", "text,label", "a,", "b,x")
    assert read(some, data_of("csv"), Label()).targets == ["", "x"]


def test_a_column_of_empty_labels_is_none_in_a_file_of_glues_form_too(tmp_path):
    header = "index\tsentence1\tsentence2\tlabel"
    path = written(tmp_path / "test.tsv", header, "0\ta\tb\t", "1\tc\td\t ")
    assert read(path, data_of("rte"), Label()).targets is None
    rows = read(path, data_of("rte"), Label(), needs_labels=True)
    with pytest.raises(UserError, match="test.tsv, line 2: the label is empty; write one"):
        Label(rows.classes).numbers(rows)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ['{"text": "a", "label": 1}', "", '{"text": "b"}'],
            "line 3: label is missing, but other rows have one",
        ),
        (
            ['{"text": "a"}', '{"text": "b", "label": 1}'],
            "line 1: label is missing, but other rows have one; give all rows one, or none",
        ),
        (
            ['{"text": "a", "label": 1}', '{"text": "b", "label": null}'],
            "line 2: label is missing, but other rows have one",
        ),
    ],
)
def test_a_file_with_some_labels_is_refused_with_the_line(tmp_path, lines, message):
    path = written(tmp_path / "a.jsonl", *lines)
    with pytest.raises(UserError, match=message):
        read(path, data_of("jsonl"), Label())


@pytest.mark.parametrize("format", ["tfds", "tsv", "csv", "jsonl"])
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("unseen.tsv", ["text\tlabel", "a, b\tpos"]),
        ("unseen.csv", ["label,text", 'pos,"a, b"']),
        ("unseen.jsonl", ['{"text": "a, b", "label": "pos"}']),
    ],
)
def test_a_run_reads_other_files_than_its_own_by_their_ending(tmp_path, format, name, lines):
    rows = read(written(tmp_path / name, *lines), data_of(format), Label())
    assert (rows.values, rows.targets) == ((["a, b"],), ["pos"])


def test_files_that_do_not_tell_how_they_are_written_are_read_as_configured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path / "reviews.csv", "text\tlabel", "a, b\tpos")
    for split in ("train", "dev", "test"):
        own = TextData(path=str(tmp_path), format="tsv", **{split: "reviews.csv"})
        assert read(Path("reviews.csv"), own, Label()).targets == ["pos"]
    path = path.rename(tmp_path / "unseen.txt")
    assert read(path, data_of("tsv"), Label()).targets == ["pos"]
    with pytest.raises(UserError, match=r"unseen.txt must end in .tsv, .csv or .jsonl"):
        read(path, data_of("tfds"), Label())


@pytest.mark.parametrize("format", ["rte", "tfds"])
@pytest.mark.parametrize("setting", [{"text_columns": ("a",)}, {"label_column": "is_entailed"}])
def test_columns_of_glue_are_not_configured(format, setting):
    (key,) = setting
    data = TextData(path="glue/rte", format=format, **setting)
    with pytest.raises(
        UserError, match=f"data.{key} cannot be set for rte, whose columns are fixed; rem"
    ):
        text_columns(data)
    assert len(text_columns(TextData(path="glue/rte", format=format))) == 2
