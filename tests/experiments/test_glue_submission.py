"""The zip for GLUE's server holds every test set, whole, and says what is missing."""

import zipfile

import pytest

from bert_tf.errors import UserError
from bert_tf.experiments.glue_submission import main, submit
from tests.tasks.tiny_texts import write_lines

ROWS = {"CoLA": 1063, "RTE": 3000, "WNLI": 146}
NAMES = "CoLA SST-2 MRPC STS-B QQP MNLI-m MNLI-mm QNLI RTE WNLI AX".split()


def write_run(folder, name, answer, rows=None):
    lines = [f"{i}\t{answer}" for i in range(rows or ROWS[name])]
    folder.mkdir(exist_ok=True)
    write_lines(folder / "predictions" / f"{name}.tsv", ["index\tprediction", *lines])
    return folder


def test_predictions_of_several_runs_are_put_together(tmp_path):
    runs = [write_run(tmp_path / name, name, "0") for name in ROWS]
    submit(runs, tmp_path / "out.zip", fill=True)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert sorted(archive.namelist()) == sorted(f"{name}.tsv" for name in NAMES)
        cola = (tmp_path / "CoLA" / "predictions" / "CoLA.tsv").read_bytes()
        assert archive.read("CoLA.tsv") == cola
        filled = archive.read("AX.tsv").decode().splitlines()
    assert filled[:2] == ["index\tprediction", "0\tentailment"]
    assert len(filled) == 1 + 1104


def test_what_is_missing_is_named(tmp_path, capsys):
    run = write_run(tmp_path / "CoLA", "CoLA", "0")
    assert main([str(run), "--out", str(tmp_path / "out.zip")]) == 2
    message = capsys.readouterr().err
    assert "no run has predictions for SST-2, MRPC, STS-B, QQP, MNLI-m, MNLI-mm, QNLI" in message
    assert "CoLA" not in message
    assert not (tmp_path / "out.zip").exists()


def test_a_test_set_twice_or_in_part_or_no_run_is_refused(tmp_path):
    one, other = (write_run(tmp_path / name, "RTE", "entailment") for name in "ab")
    with pytest.raises(UserError, match="are for RTE; give one run"):
        submit([one, other], tmp_path / "out.zip", fill=True)
    headless = write_run(tmp_path / "d", "WNLI", "0")
    file = headless / "predictions" / "WNLI.tsv"
    file.write_text(file.read_text().replace("index\t", "id\t"))
    with pytest.raises(UserError, match="WNLI.tsv: its first line must be index and prediction"):
        submit([headless], tmp_path / "out.zip", fill=True)
    part = write_run(tmp_path / "c", "WNLI", "0", rows=5)
    with pytest.raises(UserError, match="WNLI.tsv has 5 predictions, but that test set has 146"):
        submit([part], tmp_path / "out.zip", fill=True)
    with pytest.raises(UserError, match="run not found: .*nowhere"):
        submit([tmp_path / "nowhere"], tmp_path / "out.zip")
