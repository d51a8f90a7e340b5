"""The whole demo in small: it goes on where it stopped, and its last commands work as printed."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.errors import UserError
from bert_tf.programs import demo
from bert_tf.programs.demo import docstrings, passages, summary
from bert_tf.programs.demo.docstrings import Passage
from tests import tiny


@pytest.fixture
def small(monkeypatch):
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
    for name in ("_PRETRAINING", "_FINETUNING"):
        text = getattr(demo, name)
        for before, after in smaller.items():
            text = text.replace(before, after)
        lines = text.splitlines(keepends=True)
        short = {"  steps:": "  steps: 6\n", "  checkpoint_steps:": "  checkpoint_steps: 3\n"}
        short |= {"  epochs:": "  epochs: 1\n", "  batch_size:": "  batch_size: 4\n"}
        lines = [short.get(f"  {line.split(':')[0].strip()}:", line) for line in lines]
        monkeypatch.setattr(demo, name, "".join(lines))


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
