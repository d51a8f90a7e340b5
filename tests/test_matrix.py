"""The environments that are tested: one list for this machine and for GitHub's."""

import json
from pathlib import Path

import pytest
import yaml

from tests import matrix

ROOT = Path(__file__).resolve().parents[1]


def test_the_workflow_runs_every_row():
    jobs = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())["jobs"]
    rows = jobs["matrix"]["strategy"]["matrix"]["row"]
    assert rows == [row.name for row in matrix.ROWS]


def test_the_commands_of_the_workflow_are_targets_of_the_makefile():
    jobs = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    made = [command.split()[1] for command in commands if command.startswith("make ")]
    makefile = (ROOT / "Makefile").read_text()
    assert {"lint", "coverage", "test-processors", "matrix", "docs", "wheel", "audit"} == set(made)
    assert all(f"\n{target}: " in makefile for target in made)


def test_what_passed_is_printed_and_not_run_again(tmp_path, monkeypatch, capsys):
    tried = []

    def fake(row, wheel):
        tried.append(row.name)
        passed = row.tensorflow == "2.20"
        tests = {"passed": 3000, "failed": 0 if passed else 2, "skipped": 7}
        return {"passed": passed, "packages": 49, "mebibytes": 2048, "tests": tests}

    monkeypatch.setattr(matrix, "FOLDER", tmp_path)
    monkeypatch.setattr(matrix, "_build_wheel", lambda folder: folder / "a.whl")
    monkeypatch.setattr(matrix, "_state_of_the_checkout", lambda: "one")
    monkeypatch.setattr(matrix, "_try_row", fake)
    rows = ["py3.12-tf2.20-newest", "py3.12-tf2.21-newest"]

    assert matrix.main(["--only", *rows]) == 2
    told = capsys.readouterr()
    assert "| 3.12 | 2.20 | newest | 49 packages, 2.0 GiB | 3,000 | 7 | 0 |" in told.out
    assert told.err.endswith(f"1 of 2 rows failed; see {tmp_path}/{rows[1]}.log\n")
    assert matrix.main(["--only", *rows]) == 2
    assert tried == [*rows, rows[1]]
    monkeypatch.setattr(matrix, "_state_of_the_checkout", lambda: "another")
    assert matrix.main(["--only", rows[0]]) == 0
    assert tried[3:] == [rows[0]]
    assert json.loads((tmp_path / f"{rows[0]}.json").read_text())["state"] == "another"


@pytest.mark.parametrize("others", ["lowest", "newest"])
def test_a_row_holds_all_of_tensorflow_to_one_minor_version(others):
    lines = matrix.Row("3.12", "2.21", others).constraints.splitlines()
    assert sorted(lines) == [
        "tensorflow-serving-api==2.21.*",
        "tensorflow-text==2.21.*",
        "tensorflow==2.21.*",
    ]
