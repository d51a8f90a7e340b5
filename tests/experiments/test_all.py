"""Every experiment loads, the paper's rows have one each, and commands in comments are right."""

import ast
import contextlib
import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from bert_tf.cli import command, parser
from bert_tf.config.reading import load_config

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "experiments"
FILES = sorted(FOLDER.rglob("*.yaml"))
# A module's docstring, or the comment that begins a file.
SPEAKING = [
    path
    for folder in ("experiments", "bert_tf", "export")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".yaml")
]
# "…" stands for what the reader has given before.
COMMAND = re.compile(r"^ *(bert-tf|python -m ([\w.]+)) (?!COMMAND|…)(.+)$", re.MULTILINE)


def names(paths):
    return [path.relative_to(ROOT).as_posix() for path in paths]


@pytest.mark.parametrize("path", FILES, ids=names(FILES))
def test_every_file_loads(path):
    # What all of GLUE has in common waits for a task's data.
    data = ["data.path=CoLA", "data.format=cola"] if path.name == "glue.yaml" else []
    load_config(path, data)


def prose(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    return "\n".join(line[1:] for line in text.splitlines() if line.startswith("#"))


def commands(text: str):
    """The program or module of each command that stands alone on its line, and its arguments."""
    for program, module, arguments in COMMAND.findall(re.sub(r"\\+\n\s*", "", text)):
        yield module or program, shlex.split(arguments.replace("…", ""), comments=True)


@pytest.mark.parametrize(
    "path",
    [path for path in SPEAKING if COMMAND.search(prose(path))],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_the_commands_that_it_names_can_be_read(path, monkeypatch):
    def only_read(program, parser, argv, work, stopped):
        """In the place of `bert_tf.cli.command.run`: mistakes are raised, and no work is done."""
        given.append(parser.parse_args(argv))
        return 0

    given = []
    monkeypatch.setattr(command, "run", only_read)
    monkeypatch.setattr(parser, "run", only_read)
    monkeypatch.chdir(ROOT)
    found = list(commands(prose(path)))
    for program, arguments in found:
        main = parser.main if program == "bert-tf" else main_of(program)
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        main()
        settings = getattr(given[-1], "settings", None)
        config = Path(getattr(given[-1], "config", ""))
        if settings and config.parts[0] == "experiments" and "$" not in config.name:
            load_config(config, settings)
    assert len(given) == len(found) > 0


def main_of(module: str):
    with contextlib.suppress(ModuleNotFoundError):
        return importlib.import_module(f"{module}.__main__").main
    return importlib.import_module(module).main


def test_a_command_is_found_over_several_lines():
    text = (
        "It is:\n  bert-tf vocab --input a.txt \\\n    --size 8 --out b\nnot bert-tf by itself.\n"
    )
    assert list(commands(text)) == [
        ("bert-tf", ["vocab", "--input", "a.txt", "--size", "8", "--out", "b"])
    ]


def test_figure_4_starts_from_checkpoints_that_are_kept():
    for name, attention in (("base_steps", None), ("left_to_right_steps", "left_to_right")):
        config = load_config(FOLDER / "pretraining" / f"{name}.yaml")
        assert config.model.attention == attention
        train = config.train
        assert train.checkpoint_steps * train.checkpoints_kept == train.steps == 1_000_000


def test_the_ensembles_are_of_seven():
    for name in ("v1.1_large_ensemble", "v1.1_large_triviaqa_ensemble"):
        config = load_config(FOLDER / "squad" / f"{name}.yaml")
        assert len(config.trials()) == 7
        assert config.init.checkpoint.endswith("triviaqa") == ("triviaqa" in name)


@pytest.mark.parametrize("size", ["tiny", "mini", "small", "medium"])
def test_small_models_are_searched_as_they_were_published(size):
    name = "small_models" if size == "tiny" else f"small_models_{size}"
    config = load_config(FOLDER / "glue" / f"{name}.yaml")
    assert config.init.checkpoint.endswith(f"bert-{size}-uncased")
    assert config.train.epochs == 4
    assert config.search == {
        "batch_size": (8, 16, 32, 64, 128),
        "learning_rate": (3e-4, 1e-4, 5e-5, 3e-5),
    }


def test_whole_words_are_masked_as_in_the_models_published_so():
    config = load_config(FOLDER / "pretraining" / "large_whole_word_masking.yaml")
    assert config.data.whole_word_masking
    assert config.model.preset == "bert-large-uncased"
