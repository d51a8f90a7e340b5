"""The summary shows the figures, and names the commands as they can be called from here."""

import io
import sys

import pytest
from rich.console import Console

from bert_tf.programs.demo import summary

PRETRAINED = {"masked_lm_accuracy": 0.25}


def test_a_bar_is_as_long_as_its_share():
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(summary.bars({"without": 0.25, "with it": 0.5, "all": 1.0}))
    lines = console.export_text().splitlines()
    assert [line.count("━") for line in lines] == [10, 20, 40]
    assert [line.split()[-1] for line in lines] == ["25.0%", "50.0%", "100.0%"]


def test_only_what_is_there_is_named(tmp_path, capsys):
    (tmp_path / "model.tflite").touch()
    summary.show(tmp_path, {"with pre-training": 0.5}, PRETRAINED, 61.0)
    shown = capsys.readouterr().out
    assert "Done in 1 min 1 s" in shown
    assert f"{tmp_path}/model.tflite" in shown
    assert "demo.png" not in shown


@pytest.mark.parametrize("on_the_path", [True, False])
def test_programs_are_called_by_name_if_the_shell_finds_them(tmp_path, monkeypatch, on_the_path):
    programs = tmp_path / "my venv"
    programs.mkdir()
    for name in ("python", "bert-tf"):
        (programs / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", str(programs) if on_the_path else "/nowhere")
    monkeypatch.chdir(tmp_path)

    assert summary.program("bert-tf", "bert_tf") == (
        "bert-tf" if on_the_path else "'my venv/bert-tf'"
    )
    assert summary.program("tensorboard", "tensorboard.main") == (
        "'my venv/python' -m tensorboard.main"
    )


def test_a_program_of_another_python_is_not_taken(tmp_path, monkeypatch):
    (tmp_path / "bert-tf").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/usr/lib/nowhere/python")
    assert summary.program("bert-tf", "bert_tf") == "/usr/lib/nowhere/python -m bert_tf"
