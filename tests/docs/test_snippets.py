"""What the pages under docs/ tell their readers to do works, from top to bottom, on small data."""

import contextlib
import json
import random
import re
import shlex
import shutil
from pathlib import Path

import keras
import pytest

from bert_tf import cli
from bert_tf.checkpoints import conversion
from bert_tf.models import Encoder, PreTrainer
from bert_tf.text import Tokenizer
from export import __main__ as export_command
from tests import tiny, tiny_questions, tiny_tags

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
COMMANDS = {"bert-tf": cli.main, "python -m export": export_command.main}


def reviews(folder):
    tiny.write_labelled(folder)
    (folder / "dev.tsv").rename(folder / "unseen.tsv")
    tiny.write_labelled(folder)
    (folder.parent / "texts.txt").write_text("the cat sat\nthe dog ran\n")


def similarity(folder):
    source = random.Random(0)
    for split in ("train", "dev"):
        lines = [
            f"{tiny.sentence(source, 3)},{tiny.sentence(source, 3)},{source.random():.2f}"
            for _ in range(16)
        ]
        (folder / f"{split}.csv").write_text("\n".join(["first,second,score", *lines]) + "\n")
    shutil.copy(folder / "dev.csv", folder / "unseen.csv")


def squad(folder):
    for seed, (split, rows) in enumerate({"train": 16, "dev": 6}.items()):
        tiny_questions.write_squad(folder / f"{split}-v1.1.json", tiny_questions.rows(rows, seed))


def endings(folder):
    source = random.Random(0)
    for split in ("train", "dev"):
        rows = [
            {"context": "the fish", "choices": [tiny.sentence(source, 3) for _ in "ab"], "label": 1}
            for _ in range(16)
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


# Page -> the folder of its data, and what writes that.
PAGES = {
    "tasks/classification.md": ("reviews", reviews),
    "tasks/regression.md": ("similarity", similarity),
    "tasks/question_answering.md": ("squad", squad),
    "tasks/token_classification.md": ("entities", tiny_tags.write_tagged),
    "tasks/multiple_choice.md": ("endings", endings),
    "tasks/pretraining.md": (".", tiny.write_corpus),
    "inspect.md": ("reviews", reviews),
    "serving.md": (".", lambda folder: None),
    "checkpoints.md": (".", lambda folder: None),
}
SLOW = [page for page in PAGES if page != "checkpoints.md"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """What stands for BERT-base."""
    keras.utils.set_random_seed(0)
    tokenizer = Tokenizer(tiny.VOCABULARY, lower_case=True)
    config = tiny.encoder_config(16, initializer_range=0.02)
    folder = tmp_path_factory.mktemp("docs") / "bert-base-uncased"
    conversion.save(PreTrainer(Encoder(config)), folder, "huggingface", tokenizer)
    return folder


def run_line(line):
    for command, main in COMMANDS.items():
        if line.startswith(f"{command} "):
            assert main(shlex.split(line.removeprefix(command))) == 0, line
            return
    raise AssertionError(f"not a command of ours: {line}")


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.slow if p in SLOW else ()) for p in PAGES]
)
def test_every_step_of_a_page_works(page, checkpoint, tmp_path):
    data, write_data = PAGES[page]
    (tmp_path / "bert-base-uncased").symlink_to(checkpoint)
    (tmp_path / data).mkdir(exist_ok=True)
    write_data(tmp_path / data)
    names = {}
    with contextlib.chdir(tmp_path):
        for language, title, block in BLOCK.findall((DOCS / page).read_text()):
            if title:
                Path(title).write_text(block)
            elif language == "sh":
                for line in block.splitlines():
                    run_line(line)
            elif language == "python":
                exec(compile(block, page, "exec"), names)


def test_every_page_with_something_to_run_is_run():
    pages = {
        str(path.relative_to(DOCS))
        for path in DOCS.rglob("*.md")
        if {"sh", "python"} & {language for language, _, _ in BLOCK.findall(path.read_text())}
    }
    assert pages == PAGES.keys()
