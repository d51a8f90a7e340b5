"""Every benchmark reports mistakes as bert_tf's commands do, and is in the README's tables."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
# Its flags are those of google-research's script.
FOREIGN = ["reference_builder"]
NAMES = sorted(
    path.parent.name if path.stem == "__main__" else path.stem
    for pattern in ("*.py", "*/__main__.py")
    for path in FOLDER.glob(pattern)
    if "def main(" in path.read_text(encoding="utf-8") and path.stem not in FOREIGN
)


@pytest.fixture
def told(monkeypatch, capsys):
    """Runs a benchmark that ends with exit code 2; returns its error message."""

    def told(name, *arguments):
        package = FOLDER / name / "__main__.py"
        file = "__main__" if package.is_file() else ""
        module = importlib.import_module(f"benchmarks.{name}.{file}".rstrip("."))
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        assert module.main() == 2
        error = capsys.readouterr().err
        assert error.startswith(f"{name}: error: ") and error.count("\n") == 1
        return error

    return told


@pytest.mark.parametrize("name", NAMES)
def test_a_mistake_in_the_command_is_told_in_one_line(name, told):
    assert f"; see python -m benchmarks.{name} --help" in told(name, "--no-such-option")


def test_a_missing_file_is_told_in_one_line(told, tmp_path):
    missing = tmp_path / "missing.txt"
    error = told("tokenizer", "--vocab", missing, "--text", tmp_path)
    assert f"argument --vocab: there is no {missing}" in error


def test_the_distributions_require_a_vocabulary_and_reference_records(told, tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    text = ["--text", tmp_path / "text.txt"]
    assert "--vocab is missing" in told("pretraining_distributions", *text)
    text += ["--vocab", tmp_path / "vocab.txt"]
    assert "--reference-records is missing" in told("pretraining_distributions", *text)


def test_only_the_text_of_the_distributions_is_written_without_the_rest(tmp_path, monkeypatch):
    from benchmarks import pretraining_distributions

    (tmp_path / "wiki.txt").write_text(" = York = \n\n It was late . All slept . \n")
    given = ["--text", tmp_path / "text.txt", "--write-text", tmp_path / "wiki.txt"]
    monkeypatch.setattr(sys, "argv", ["", *map(str, given)])
    assert pretraining_distributions.main() == 0
    assert (tmp_path / "text.txt").read_text() == "York\nIt was late .\nAll slept .\n"


def test_what_is_no_export_cannot_be_loaded(told, tmp_path):
    assert "is no SavedModel; name a folder made by an export" in told("load", tmp_path)


def test_what_is_served_needs_its_texts(told, tmp_path):
    error = told("serving", "--checkpoint", tmp_path, "--data", tmp_path)
    assert f"--data {tmp_path} holds no wikitext2/valid.txt" in error


def test_quality_needs_weights_and_data(told, tmp_path):
    given = ["--out", tmp_path / "out", "--tasks", "CoLA"]
    for name in ("checkpoint", "data", "glue", "squad"):
        given += [f"--{name}", tmp_path]
    assert f"--checkpoint {tmp_path} holds no *.safetensors" in told("quality", *given)
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert f"there is no folder {tmp_path / 'CoLA'} with data" in told("quality", *given)


def test_every_benchmark_is_in_the_table():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    tables = [line for line in readme.splitlines() if line.startswith("| `")]
    for name in [*NAMES, *FOREIGN]:
        assert any(f"`{name}`" in line.split("|")[1] for line in tables), name
