"""Every experiment loads and says what the paper says, and commands in comments are right."""

import ast
import contextlib
import importlib
import os
import re
import shlex
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from bert_tf.cli import command, parser
from bert_tf.config.reading import load_config
from bert_tf.tasks.texts.glue import GLUE
from bert_tf.tasks.token_classification.model import FEATURES

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
# "…" stands for arguments that the reader has seen before.
COMMAND = re.compile(r"^ *(bert-tf|python -m ([\w.]+)) (?!COMMAND|…)(.+)$", re.MULTILINE)


def names(paths):
    return [path.relative_to(ROOT).as_posix() for path in paths]


@pytest.mark.parametrize("path", FILES, ids=names(FILES))
def test_every_file_loads(path):
    # glue.yaml has the settings that all tasks of GLUE share, but no data.
    data = ["data.path=CoLA", "data.format=cola"] if path.name == "glue.yaml" else []
    config = load_config(path, data)
    if path.parent.name == "squad":
        assert (config.task, config.train.max_length) == ("question_answering", 384)
        assert config.data.unanswerable == (path.name == "v2.0.yaml")


def load(name):
    return load_config(name)


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
        """Replaces `bert_tf.cli.command.run`: mistakes are raised, and no work is done."""
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
        name = getattr(given[-1], "config", "")
        if "/" in name and "$" not in name and not name.endswith((".yaml", ".tsv")):
            load_config(name, given[-1].settings)
    assert len(given) == len(found) > 0


def main_of(module: str):
    with contextlib.suppress(ModuleNotFoundError):
        return importlib.import_module(f"{module}.__main__").main
    return importlib.import_module(module).main


def test_the_table_of_the_documentation_has_every_name():
    page = (ROOT / "docs" / "how_to" / "paper_tasks.md").read_text()
    table = page.partition("| names |")[2].partition("\n\n")[0]
    patterns = re.findall(r"`([^`]+)`", re.sub(r"\|[^|]*\|$", "", table, flags=re.MULTILINE))
    known = [path.relative_to(FOLDER).as_posix().removesuffix(".yaml") for path in FILES]
    assert [name for name in known if not any(fnmatch(name, each) for each in patterns)] == []
    assert [each for each in patterns if not any(fnmatch(name, each) for name in known)] == []


def test_paths_in_the_files_start_from_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in FILES:
        if path.name != "glue.yaml":
            config = load_config(path)
            paths = [config.data.path, config.tokenizer.vocab, config.init.checkpoint]
            assert not any(map(os.path.isabs, filter(None, paths))), path
    (tmp_path / "glue_data" / "CoLA").mkdir(parents=True)
    assert load("glue/cola").data.path == str(tmp_path / "glue_data" / "CoLA")


def test_a_command_is_found_over_several_lines():
    text = (
        "It is:\n  bert-tf vocab --input a.txt \\\n    --size 8 --out b\nnot bert-tf by itself.\n"
    )
    assert list(commands(text)) == [
        ("bert-tf", ["vocab", "--input", "a.txt", "--size", "8", "--out", "b"])
    ]


@pytest.mark.parametrize(
    ("name", "next_sentence", "attention"),
    [
        ("base", True, None),
        ("base_no_nsp", False, None),
        ("base_left_to_right", False, "left_to_right"),
        ("base_right_to_left", False, "right_to_left"),
    ],
)
def test_the_objectives_of_table_5_differ_in_nothing_else(name, next_sentence, attention):
    config = load(f"pretraining/{name}")
    assert (config.data.next_sentence, config.model.attention) == (next_sentence, attention)
    assert config.model.preset == "bert-base-uncased"
    assert config.train == load("pretraining/base").train


@pytest.mark.parametrize("task", ["mnli", "qnli", "mrpc", "sst2", "squad"])
def test_the_last_row_of_table_5_is_fine_tuned_with_a_bilstm(task):
    config = load(f"bilstm/{task}")
    assert config.model.bilstm
    assert config.init.checkpoint.endswith("base_left_to_right")


def test_the_sizes_of_table_6():
    sizes = set()
    for path in (FOLDER / "pretraining" / "sizes").glob("*.yaml"):
        model = load_config(path).model
        size = (model.num_hidden_layers, model.hidden_size, model.num_attention_heads)
        assert path.stem == "x".join(map(str, size)) and model.preset is None
        sizes.add(size)
    narrow = {(3, 768, 12), (6, 768, 3), (6, 768, 12), (12, 768, 12)}
    assert sizes == narrow | {(12, 1024, 16), (24, 1024, 16)}


def test_every_row_of_table_7_has_a_file():
    start = "conll2003_features_"
    files = {path.stem.removeprefix(start): path for path in FOLDER.glob(f"ner/{start}*.yaml")}
    assert set(files) == set(FEATURES)
    for name, path in files.items():
        config = load_config(path)
        assert (config.model.features, config.model.lstm_units) == (name, 768)
        assert config.data.document_context


def test_figure_4_starts_from_checkpoints_that_are_kept():
    for name, attention in (("base_steps", None), ("left_to_right_steps", "left_to_right")):
        config = load(f"pretraining/{name}")
        assert config.model.attention == attention
        train = config.train
        assert train.checkpoint_steps * train.checkpoints_kept == train.steps == 1_000_000


@pytest.mark.parametrize("task", [task for task in GLUE if task != "ax"])
def test_every_task_of_glue_has_an_experiment(task):
    config = load(f"glue/{task}")
    assert config.task == ("classification" if GLUE[task].classes else "regression")
    assert config.data.format == task
    assert config.searched == {"learning_rate": (5e-5, 4e-5, 3e-5, 2e-5)}
    assert (config.train.batch_size, config.train.epochs) == (32, 3)
    assert config.init.checkpoint == "bert-base-uncased"
    if task == "wnli":
        assert not (FOLDER / "glue" / f"{task}_large.yaml").exists()
    else:
        config = load(f"glue/{task}_large")
        assert config.init.checkpoint == "bert-large-uncased"
        assert ("seed" in config.searched) == (task in ("cola", "stsb", "mrpc", "rte"))


@pytest.mark.parametrize("name", ["swag", "codah", "swag_large"])
def test_multiple_choice_has_the_papers_settings(name):
    config = load(f"swag/{name}")
    train = config.train
    assert config.task == "multiple_choice"
    assert (train.batch_size, train.learning_rate, train.epochs) == (16, 2e-5, 3)


@pytest.mark.parametrize("size", ["", "_large"])
def test_the_fine_tuning_of_taggers_searches_as_in_the_paper(size):
    config = load(f"ner/conll2003{size}")
    assert config.searched["learning_rate"] == (5e-5, 3e-5, 2e-5)
    assert config.searched["epochs"] == (2, 3, 4)
    assert config.model.features is None and config.data.document_context
    assert ("large" in config.init.checkpoint) == bool(size)


def test_wnut17_names_the_files_of_its_authors(shared_data):
    data = load("ner/wnut17").data
    for name in (data.train, data.dev, data.test):
        assert (shared_data / "wnut17" / name).is_file()


@pytest.mark.parametrize("name", ["v1.1_large_ensemble", "v1.1_large_triviaqa_ensemble"])
def test_the_ensembles_are_of_seven(name):
    config = load(f"squad/{name}")
    assert len(config.trials()) == 7
    assert config.init.checkpoint.endswith("triviaqa") == ("triviaqa" in name)


@pytest.mark.parametrize("size", ["tiny", "mini", "small", "medium"])
def test_small_models_are_searched_as_they_were_published(size):
    config = load("glue/small_models" if size == "tiny" else f"glue/small_models_{size}")
    assert config.init.checkpoint.endswith(f"bert-{size}-uncased")
    assert config.train.epochs == 4
    assert config.searched == {
        "batch_size": (8, 16, 32, 64, 128),
        "learning_rate": (3e-4, 1e-4, 5e-5, 3e-5),
    }


def test_whole_words_are_masked_as_in_the_models_published_so():
    config = load("pretraining/large_whole_word_masking")
    assert config.data.whole_word_masking
    assert config.model.preset == "bert-large-uncased"
