"""Tables of Arrow: Parquet and Arrow files, what `datasets` saves, data frames."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.data import arrow
from bert_tf.errors import UserError
from tests.data.loopback_hub import hub

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
datasets = pytest.importorskip("datasets")

ROWS = {"text": ["a film", "a play", "a song"], "label": [1, 0, 1]}
FEATURES = datasets.Features(
    {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
)
NAMED = [{"text": t, "label": ("bad", "good")[n]} for t, n in zip(*ROWS.values(), strict=True)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def data_set():
    return datasets.Dataset.from_dict(ROWS, features=FEATURES)


def read(path):
    table = arrow.read(path)
    return [*table.rows(table.names)]


def test_rows_are_made_when_they_are_read():
    table, made = pa.table({"n": [*range(3000)]}), []

    def make(number, row):
        made.append(number)
        assert number == row["n"]
        return number

    rows = arrow.ArrowRows(table, make)
    assert (len(rows), made) == (3000, [])
    assert rows[2999] == rows[-1] == 2999
    assert made == [*range(2048, 3000)]
    assert [*rows[10:2990][5:8]] == [15, 16, 17]
    assert [*rows.map(str)[::1000]] == ["0", "1000", "2000"]
    assert [*rows] == [*range(3000)]
    with pytest.raises(IndexError):
        rows[3000]


@pytest.mark.parametrize("name", ["a.parquet", "b-*.parquet", "saved", "saved/train", "folder"])
def test_files_globs_and_saved_data_sets_have_the_same_rows(tmp_path, data_set, name):
    table = data_set.data.table
    pq.write_table(table, tmp_path / "a.parquet")
    for number in range(3):
        pq.write_table(table.slice(number, 1), tmp_path / f"b-{number}.parquet")
    if name == "saved":
        data_set.save_to_disk(tmp_path / name)
    else:
        datasets.DatasetDict({"train": data_set}).save_to_disk(tmp_path / "saved")
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.parquet").rename(tmp_path / "folder/x.parquet")
    pq.write_table(table, tmp_path / "a.parquet")
    assert read(tmp_path / name) == NAMED


def test_arrow_files_and_folders_of_splits_are_read(tmp_path, data_set):
    data_set.save_to_disk(tmp_path / "saved")
    (file,) = (tmp_path / "saved").glob("*.arrow")
    file.rename(tmp_path / "b.arrow")
    assert read(tmp_path / "b.arrow") == NAMED
    (tmp_path / "hub").mkdir()
    pq.write_table(data_set.data.table, tmp_path / "hub/train-00000-of-00001.parquet")
    assert read(tmp_path / "hub/train") == NAMED
    assert read(tmp_path / "hub/train[:2]") == NAMED[:2]


def test_rows_without_a_class_are_left_out_and_counted(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(arrow.logger, "warning", said.append)
    some = datasets.Dataset.from_dict(ROWS | {"label": [1, -1, None]}, features=FEATURES)
    table = arrow.of_object(some, "x").labelled("label")
    assert [*table.rows(["text", "label"])] == NAMED[:1]
    assert said == ["x: rows skipped because they have no label: 2"]
    none = datasets.Dataset.from_dict(ROWS | {"label": [-1, -1, -1]}, features=FEATURES)
    assert [*arrow.of_object(none, "x").labelled("label").column("label")] == [None] * 3


def test_rows_that_were_selected_keep_their_order(data_set):
    chosen = arrow.of_object(data_set.select([2, 0]), "x")
    assert [*chosen.rows(["text", "label"])] == [NAMED[2], NAMED[0]]


def test_wrong_columns_are_named_with_those_that_are_there():
    table = arrow.of_object(pa.table({"texts": ["a"], "words": [["a"]], "n": [1]}), "a.parquet")
    columns = "the columns are texts (string), words (list<"
    with pytest.raises(UserError, match="a.parquet: no column 'text'; ") as error:
        table.check_texts(["text"])
    assert columns in str(error.value) and str(error.value).endswith("'texts' is the nearest")
    with pytest.raises(UserError, match="the column 'n' has the type int64, not string; the col"):
        table.check_texts(["n"])
    with pytest.raises(UserError, match="'words' has the type list<.*string>, not string; the co"):
        table.check_texts(["words"])
    with pytest.raises(UserError, match="'texts' has the type string, not list of strings; the"):
        table.check_texts(["texts"], rank=2)
    twice = arrow.of_object(pa.table([["a"], ["b"]], names=["text", "text"]), "x")
    with pytest.raises(UserError, match="x: two columns are named 'text'; rename one"):
        twice.check_texts(["text"])


def test_what_cannot_be_read_is_one_sentence(tmp_path, data_set, caplog):
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    (tmp_path / "other.txt").write_text("text")
    (tmp_path / "folder").mkdir()
    pq.write_table(data_set.data.table, tmp_path / "folder/train.parquet")
    for name, said in (
        ("bad.parquet", "bad.parquet cannot be read by datasets: ArrowInvalid: "),
        ("none.parquet", "none.parquet: no such file or split; .*; check data.path"),
        ("other.txt", "other.txt: .*; files end in .parquet, .arrow, .feather; check"),
        ("folder/dev", 'dev cannot be read by datasets: ValueError: Unknown split "dev"'),
    ):
        with pytest.raises(UserError, match=said) as error:
            arrow.read(tmp_path / name)
        assert "\n" not in str(error.value)
    assert not caplog.records
    with pytest.raises(UserError, match="no such folder/train: no such file or split"):
        arrow.read(Path("no such folder/train"))
    with pytest.raises(UserError, match="cannot be read by datasets: "):
        arrow.read(Path("nobody/nothing/train"))  # the tests are offline
    with pytest.raises(UserError, match="x has the splits train; give one of them"):
        arrow.of_object(datasets.DatasetDict({"train": data_set}), "x")


def test_a_stream_is_read_once_to_a_file_that_goes_with_its_rows(tmp_path, monkeypatch, data_set):
    monkeypatch.setenv("BERT_TF_CACHE", str(tmp_path / "cache"))
    stream = data_set.to_iterable_dataset()
    assert arrow.is_table(stream)
    table = arrow.of_object(stream, "x")
    assert table.classes("label") == ("bad", "good")
    assert [*table.rows(["text", "label"])] == NAMED
    assert [*arrow.of_object(stream.skip(1).take(1), "x").rows(["text", "label"])] == NAMED[1:2]
    assert not [*(tmp_path / "cache").iterdir()]


def test_a_stream_may_know_the_types_of_its_columns_late(tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_TF_CACHE", str(tmp_path))
    rows = [{"n": n, "text": None if n < 1500 else "late"} for n in range(3000)]
    stream = datasets.IterableDataset.from_generator(lambda: iter(rows))
    table = arrow.of_object(stream, "x")
    table.check_texts(["text"])
    assert [*table.rows(["n", "text"])] == rows


def test_a_stream_that_fails_or_is_empty_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_TF_CACHE", str(tmp_path / "cache"))

    def broken():
        yield {"text": "a film"}
        raise OSError("the connection is lost")

    make = datasets.IterableDataset.from_generator
    with pytest.raises(UserError, match="x cannot be read as a stream: .*the connection is lost"):
        arrow.of_object(make(broken), "x")
    with pytest.raises(UserError, match="x is a stream without rows"):
        arrow.of_object(make(lambda: iter([])), "x")
    assert not [*(tmp_path / "cache").iterdir()]


def test_the_extra_is_named_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(UserError, match="to read it, bert_tf requires the extra datasets"):
        arrow.read(tmp_path / "a.parquet")


@pytest.mark.parametrize("package", ["pyarrow", "pandas", "polars", "datasets"])
def test_tables_of_all_packages_have_the_same_columns(package):
    module = pytest.importorskip(package)
    make = {"pyarrow": "table", "datasets": "Dataset"}.get(package, "DataFrame")
    make = getattr(module, make)
    given = make.from_dict(ROWS) if package == "datasets" else make(ROWS)
    assert arrow.is_table(given)
    table = arrow.of_object(given, "x")
    table.check_texts(["text"])
    assert {name: [*table.column(name)] for name in table.names} == ROWS


def test_a_column_of_several_types_is_refused_in_a_sentence():
    frame = pytest.importorskip("pandas").DataFrame({"text": ["a", 1]})
    with pytest.raises(UserError, match="x cannot be read as columns: ArrowTypeError: "):
        arrow.of_object(frame, "x")


PROGRAM = """
import sys
from pathlib import Path
from bert_tf.data import arrow
from bert_tf.errors import UserError

for name in sys.argv[1:]:
    try:
        table = arrow.read(Path(name))
        print([*table.column("text")])
    except UserError as error:
        print(error)
"""


@pytest.mark.end_to_end
def test_a_name_on_the_hub_goes_through_its_endpoint(tmp_path, data_set):
    pq.write_table(data_set.data.table, tmp_path / "a.parquet")
    streams = ["stream://org/films/train[:2]", "stream://org/films@main/train"]
    names = ["org/films/train", "hf://org/films@main/train[:1]", "org/films/dev", *streams]
    command = [sys.executable, "-c", PROGRAM, *names]
    environment = os.environ | {"HF_HOME": str(tmp_path / "home"), "PYTHONPATH": os.getcwd()}
    files = {"train-00000-of-00001.parquet": (tmp_path / "a.parquet").read_bytes()}
    with hub(files) as endpoint:
        environment |= {"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"}
        environment |= {"BERT_TF_CACHE": str(tmp_path / "cache")}
        online = subprocess.run(command, env=environment, capture_output=True, text=True)
    first, part, unknown, *streamed = online.stdout.splitlines()
    assert streamed == ["['a film', 'a play']", first], online.stderr
    assert (first, part) == ("['a film', 'a play', 'a song']", "['a film']"), online.stderr
    assert unknown.startswith("org/films/dev cannot be read by datasets: ValueError: Unknown split")
    assert not [*(tmp_path / "cache").iterdir()]
    # What was fetched is read without a Hub.
    environment |= {"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:9"}
    offline = subprocess.run(command[:4], env=environment, capture_output=True, text=True)
    assert offline.stdout.splitlines() == [first], offline.stderr
