"""The demo: it continues where it stopped, shows its figures, and its commands work as printed."""

import io
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from bert_tf.config import yaml_files
from bert_tf.errors import UserError
from bert_tf.experiments import demo
from bert_tf.experiments.demo import docstrings, passages, summary
from bert_tf.experiments.demo.docstrings import Passage
from tests import tiny

ACCURACIES = {"always the same library": 0.25, "without pre-training": 0.5, "with it": 0.75}
CURVES = {
    "train": {"masked_lm_accuracy": ([100, 200], [0.1, 0.2]), "loss": ([100, 200], [9.0, 8.0])},
    "dev": {"masked_lm_accuracy": ([200], [0.25])},
}


def test_the_two_fine_tunings_differ_only_in_their_start():
    pretraining, from_scratch, pretrained = (
        yaml_files.read(demo._FILES / name).values for name in demo._CONFIGS
    )
    assert pretrained.pop("init") == {"checkpoint": "pretraining"}
    assert pretrained == from_scratch
    # Other sizes would be those of the checkpoint in one of them, and defaults in the other.
    assert pretraining["model"].keys() == from_scratch["model"].keys()


@pytest.fixture
def panels(monkeypatch):
    """Draws a picture; returns its panels and the PNG."""
    figures, to_png = [], summary.to_png
    monkeypatch.setattr(summary, "to_png", lambda figure: figures.append(figure) or to_png(figure))

    def draw(*given):
        drawn = summary.draw(*given)
        return figures[-1].axes, drawn

    return draw


def test_the_picture_shows_every_number(panels):
    given = ACCURACIES, CURVES, ["a", "a", "b", "b"], ["a", "b", "b", "b"]
    (accuracies, curve, confusions), drawn = panels(*given)
    assert drawn.startswith(b"\x89PNG") and len(drawn) > 10_000
    assert [bar.get_height() for bar in accuracies.patches] == [25, 50, 75]
    lines = {line.get_label(): line.get_xydata().tolist() for line in curve.lines}
    assert lines == {"training text": [[100, 10], [200, 20]], "held-out text": [[200, 25]]}
    # Rows are the right labels, columns the predicted ones.
    assert [text.get_text() for text in confusions.texts] == ["1", "1", "0", "2"]


def test_a_pretraining_that_logged_nothing_has_an_empty_panel(panels):
    (_, curve, _), _ = panels(ACCURACIES, {"train": {}, "dev": {}}, ["a", "b"], ["a", "a"])
    assert not curve.lines


def test_a_bar_is_as_long_as_its_share():
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(summary.bars({"without": 0.25, "with it": 0.5, "all": 1.0}))
    lines = console.export_text().splitlines()
    assert [line.count("━") for line in lines] == [10, 20, 40]
    assert [line.split()[-1] for line in lines] == ["25.0%", "50.0%", "100.0%"]


def test_only_results_that_are_there_are_named(tmp_path, capsys):
    (tmp_path / "model.tflite").touch()
    summary.show(tmp_path, {"with pre-training": 0.5}, {"masked_lm_accuracy": 0.25}, 61.0)
    shown = capsys.readouterr().out
    assert "Done in 1 min 1 s" in shown
    assert f"{tmp_path}/model.tflite" in shown
    assert "demo.png" not in shown


@pytest.mark.parametrize(
    ("path", "name"),
    [("{}", "bert-tf"), ("/nowhere", "'my venv/bert-tf'")],
)
def test_programs_are_called_by_name_if_the_shell_finds_them(tmp_path, monkeypatch, path, name):
    programs = tmp_path / "my venv"
    programs.mkdir()
    for each in ("python", "bert-tf"):
        (programs / each).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", path.format(programs))
    monkeypatch.chdir(tmp_path)

    assert summary.program("bert-tf", "bert_tf") == name
    module = "tensorboard.main"
    assert summary.program("tensorboard", module) == f"'my venv/python' -m {module}"


def test_a_program_of_another_python_is_not_taken(tmp_path, monkeypatch):
    (tmp_path / "bert-tf").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/usr/lib/nowhere/python")
    assert summary.program("bert-tf", "bert_tf") == "/usr/lib/nowhere/python -m bert_tf"


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A demo of two libraries, whose text is random and whose trainings take a moment."""
    source = random.Random(0)
    found = [
        Passage(library, f"{library}/m{number}.py", sentences)
        for library in ("letters", "parcels")
        for number in range(24)
        for sentences in [tuple(f"The {tiny.sentence(source, 12)}" for _ in range(3))]
    ]
    monkeypatch.setattr(docstrings, "harvest", lambda on_progress: found)
    monkeypatch.setattr(passages, "SIZES", {"train": 8, "dev": 4, "test": 4})
    monkeypatch.setattr(demo, "VOCABULARY_SIZE", 100)
    smaller = {"hidden_size: 128": "hidden_size: 16", "learning_rate: 1e-3": "learning_rate: 1e-2"}
    short = {"  steps:": "  steps: 6\n", "  checkpoint_steps:": "  checkpoint_steps: 3\n"}
    short |= {"  epochs:": "  epochs: 1\n", "  batch_size:": "  batch_size: 4\n"}
    for file in (*demo._CONFIGS, demo._PROGRAM):
        text = (demo._FILES / file).read_text()
        for before, after in smaller.items():
            text = text.replace(before, after)
        lines = text.splitlines(keepends=True)
        lines = [short.get(f"  {line.split(':')[0].strip()}:", line) for line in lines]
        (tmp_path / file).write_text("".join(lines))
    monkeypatch.setattr(demo, "_FILES", tmp_path)


def test_a_folder_that_cannot_be_written_is_reported_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(docstrings, "harvest", lambda **_: pytest.fail("the work has begun"))
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file"):
        demo.run(tmp_path / "file" / "demo")


def test_a_demo_with_other_settings_is_not_continued(tmp_path):
    (tmp_path / "pretraining.yaml").write_text("task: pretraining\n")
    with pytest.raises(UserError, match=r"another pretraining\.yaml.*remove that folder"):
        demo.run(tmp_path)
    assert (tmp_path / "pretraining.yaml").read_text() == "task: pretraining\n"


def test_libraries_without_their_sources_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(docstrings, "harvest", lambda **_: [])
    with pytest.raises(UserError, match=r"no documentation strings.*\.py files"):
        demo.run(tmp_path)


@pytest.mark.slow
def test_the_whole_demo(small, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as interrupted:

        def stop(*given):
            raise KeyboardInterrupt

        interrupted.setattr(demo, "_export", stop)
        with pytest.raises(KeyboardInterrupt):
            demo.run("runs/demo")
    capfd.readouterr()
    kept = {path: path.stat().st_mtime_ns for path in Path("runs/demo").glob("*/checkpoints/*")}

    demo.run("runs/demo")

    shown = capfd.readouterr()
    assert "Reading the documentation" not in shown.err
    assert len(kept) >= 3
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    for name in ("demo.png", "inspect.html", "saved_model", "model.tflite"):
        assert f"runs/demo/{name}" in shown.out
    right = shown.err.split("The right answers: ")[1].split("\n")[0].split(", ")
    assert len(right) == 4 and set(right) <= {"letters", "parcels"}

    commands = [line.strip() for line in shown.out.splitlines() if line.startswith("  ")]
    commands = commands[commands.index("mkdir -p mine") :]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for command in [
        f"{summary.program('bert-tf', 'bert_tf')} predict runs/demo/saved_model 'The cat sat.'",
        *commands,
    ]:
        done = subprocess.run(["sh", "-c", command], capture_output=True, env=environment)
        assert done.returncode == 0, (command, done.stderr)
    assert b'"label"' in done.stdout
