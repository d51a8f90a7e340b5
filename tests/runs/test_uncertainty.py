"""Runs that calibrate, and two runs that are compared."""

import json
import math
import re

import numpy as np
import pytest

import bert_tf
from bert_tf.cli.parser import main
from bert_tf.experiments.report import report
from bert_tf.experiments.report.comparison import mcnemar
from bert_tf.tasks import uncertainty
from tests import tiny


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs that differ in their learning rate; the first is calibrated."""
    folder = tmp_path_factory.mktemp("runs")
    config = tiny.write_finetuning(folder)
    lines = (folder / "dev.tsv").read_text().splitlines()
    flipped = [line.replace("\tbad", "\tgood") for line in lines[1:4]]  # no model is always right
    (folder / "dev.tsv").write_text("\n".join([*lines, *flipped]) + "\n")
    for name, *options in (
        ("one", "calibrate=true", "train.learning_rate=0.01"),
        ("other", "train.learning_rate=1e-9"),
    ):
        given = ["finetune", str(config), "--out", str(folder / name), "--set", *options]
        assert main([*given, "train.epochs=4"]) == 0
    return folder


@pytest.mark.end_to_end
def test_a_run_calibrates_on_its_dev_data(runs, capsys, monkeypatch):
    metrics = json.loads((runs / "one" / "metrics.json").read_text())
    assert metrics["temperature"] == bert_tf.load(runs / "one").temperature != 1
    assert metrics["calibration_error_after"] <= metrics["calibration_error_before"]
    assert "temperature" not in json.loads((runs / "other" / "metrics.json").read_text())
    monkeypatch.setattr(uncertainty, "RESAMPLES", 20)
    assert main(["evaluate", str(runs / "one"), "--confidence", "0.9"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["accuracy_low"] <= printed["accuracy"] <= printed["accuracy_high"]
    again = json.loads((runs / "one" / "metrics.json").read_text())
    assert again.items() >= {**metrics, "loss": pytest.approx(metrics["loss"])}.items()
    assert main(["evaluate", str(runs / "one"), "--confidence", "95"]) == 2
    assert "confidence must be less than 1" in capsys.readouterr().err


@pytest.mark.end_to_end
def test_one_label_on_dev_data_shows_before_training(runs, capsys):
    (runs / "good.tsv").write_text("text\tlabel\nthe cat sat\tgood\nthe cat\tgood\n")
    options = ["--set", "calibrate=true", "data.dev=good.tsv"]
    config = str(next(runs.glob("*.yaml")))
    assert main(["finetune", config, "--out", str(runs / "none"), *options]) == 2
    assert "the same label for all rows" in capsys.readouterr().err
    assert not [*(runs / "none").glob("checkpoints/step-*")]


@pytest.mark.end_to_end
def test_two_runs_are_compared_row_by_row(runs, monkeypatch, capsys):
    monkeypatch.setattr(uncertainty, "RESAMPLES", 50)
    report([runs / "one", runs / "other"], runs / "page.md")
    _, section = (runs / "page.md").read_text().split("## Comparison")
    head, _, *rows = re.findall(r"^\|.*\|$", section, re.MULTILINE)
    names = ["", "one", "other", "difference", "95 % interval", "p (bootstrap)"]
    assert [cell.strip() for cell in head.split("|")[1:-1]] == names
    cells = {row.split(" | ")[0].strip("| "): row.split(" | ") for row in rows}
    known = [json.loads((runs / n / "metrics.json").read_text()) for n in ("one", "other")]
    one, other = (100 * each["accuracy"] for each in known)
    expected = [f"{one:.2f}", f"{other:.2f}", f"{other - one:+.2f}"]
    assert cells["accuracy"][1:4] == expected
    assert "The difference of accuracy" in section and "more than noise" in section
    assert "McNemar's exact test" in section
    # The same model twice has no difference.
    report([runs / "one", runs / "../" / runs.name / "one"], runs / "same.md")
    assert "is not more than noise (p = 1.000, 12 rows)" in (runs / "same.md").read_text()
    dev = (runs / "dev.tsv").read_text()
    (runs / "shorter.tsv").write_text("\n".join(dev.splitlines()[:-2]) + "\n")
    options = ["--set", "data.dev=shorter.tsv"]
    config = str(next(runs.glob("*.yaml")))
    assert main(["finetune", config, "--out", str(runs / "shorter"), *options]) == 0
    capsys.readouterr()
    report([runs / "one", runs / "shorter"], runs / "page.md")
    assert "not compared row by row: their dev data differ" in capsys.readouterr().err
    assert "Comparison" not in (runs / "page.md").read_text()


def test_mcnemars_p_is_that_of_its_definition():
    # 92 rows are right in one model only; p is the chance that one model has 33 of them or fewer.
    p = 2 * sum(math.comb(92, k) for k in range(34)) / 2**92
    first, second = (np.repeat(each, (101, 59, 33, 121)) for each in ([1, 1, 0, 0], [1, 0, 1, 0]))
    only = "59 rows are right in the first run alone, 33 in the second"
    assert mcnemar(first > 0, second > 0) == f"McNemar's exact test: {only}; p = {p:.3f}."
    assert "p = 1.000" in mcnemar(first > 0, first > 0)
