"""The notebook runs from top to bottom, and what is shown in it came from such a run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "pretrain.ipynb"
LINK = re.compile(r"\]\(([^)#:\s]+)\)")


@pytest.fixture(scope="module")
def cells():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


def sources(cells, kind):
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def test_it_was_run_from_top_to_bottom(cells):
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]

    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert "error" not in {output["output_type"] for output in outputs}
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2


def test_it_is_small_and_names_no_place_on_a_machine(cells):
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 200_000
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|usr|var)/", text)


def test_its_links_lead_somewhere(cells):
    links = [link for text in sources(cells, "markdown") for link in LINK.findall(text)]
    assert links
    for link in links:
        assert (NOTEBOOK.parent / link).is_file(), link


def test_the_files_that_it_names_are_there(cells):
    names = [
        name for text in sources(cells, "markdown") for name in re.findall(r"docs/[\w./]*", text)
    ]
    assert names
    for name in names:
        assert (NOTEBOOK.parents[2] / name).exists(), name


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_it_runs_as_written(cells, tmp_path):
    script = tmp_path / "cells.py"
    script.write_text("\n\n".join(sources(cells, "code")), encoding="utf-8")
    environment = {"MPLBACKEND": "Agg", "TMPDIR": str(tmp_path), "KERAS_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env=os.environ | environment | {"PYTHONPATH": str(NOTEBOOK.parents[2])},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    (accuracy,) = re.findall(r"^accuracy on 800 passages: ([\d.]+)%$", done.stdout, re.MULTILINE)
    # Of four libraries, each as frequent as the others.
    assert float(accuracy) > 50
    assert len(re.findall(r"^ +(?:keras|python|scipy|sklearn) +\d+%", done.stdout, re.M)) == 4
