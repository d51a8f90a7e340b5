"""What README.md and the pages under docs/ name is there: pages, files, modules, commands."""

import importlib
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import bert_tf
from bert_tf.cli.parser import main

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "serving" / "README.md", *sorted(DOCS.rglob("*.md"))]

CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^):\s]+)\)")
FOLDERS = "bert_tf|benchmarks|docs|experiments|export|serving|tests"
# One of our folders and what follows, where it is not itself part of a longer path.
FILE = re.compile(rf"(?<![\w./-])(?:{FOLDERS})/(?:[\w*-]+(?:[./][\w*-]+)*/?)?")
MODULE = re.compile(rf"python -m ((?:{FOLDERS})\b[\w.]*)")
COMMAND = re.compile(r"bert-tf ([a-z]+(?:-[a-z]+)*)")
TARGET = re.compile(r"(?:^|`)make ([a-z-]+)", re.MULTILINE)


def anchors(text: str) -> list[str]:
    """What links to the headings of a page end in."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", text), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings]


each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


@each_page
def test_links_lead_somewhere(page):
    for link in LINK.findall(CODE.sub("", page.read_text())):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not heading or heading in anchors(target.read_text()), link


@each_page
def test_files_that_are_named_are_there(page):
    for name in FILE.findall(page.read_text()):
        assert list(ROOT.glob(name.rstrip("/"))), name


@each_page
def test_modules_that_are_run_are_there(page):
    for name in MODULE.findall(page.read_text()):
        path = ROOT / name.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), name


@each_page
def test_commands_and_targets_that_are_named_are_there(page, capsys):
    for name in set(COMMAND.findall(page.read_text())):
        with pytest.raises(SystemExit) as stopped:
            main([name, "--help"])
        assert stopped.value.code == 0, name
    makefile = (ROOT / "Makefile").read_text()
    for name in TARGET.findall(page.read_text()):
        assert re.search(rf"^{name}:", makefile, re.MULTILINE), name


def test_the_menu_has_every_page():
    def pages(menu):
        for entry in menu:
            inside = next(iter(entry.values())) if isinstance(entry, dict) else entry
            yield from pages(inside) if isinstance(inside, list) else [inside]

    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    found = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert {page for page in pages(menu) if page.endswith(".md")} == found
    assert all((DOCS / page).is_file() for page in pages(menu))


def test_the_notebook_is_shown_and_not_run_again():
    plugins = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["plugins"]
    (settings,) = (each["mkdocs-jupyter"] for each in plugins if "mkdocs-jupyter" in each)
    assert settings["execute"] is False
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert any(each.startswith("mkdocs-jupyter==") for each in extras["docs"])


def test_the_reference_has_every_public_name_and_none_that_is_not_there():
    named = re.findall(r"^::: (\S+)$", (DOCS / "reference" / "python.md").read_text(), re.MULTILINE)
    public = {f"bert_tf.{name}" for name in bert_tf.__all__}
    assert public <= set(named)
    for name in named:
        module, _, thing = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), thing)), name


def test_the_reference_has_what_the_pages_import():
    named = (DOCS / "reference" / "python.md").read_text()
    notebooks = [json.loads(each.read_text()) for each in (DOCS / "tutorials").glob("*.ipynb")]
    cells = ["".join(cell["source"]) for each in notebooks for cell in each["cells"]]
    for text in (*(page.read_text() for page in PAGES), *cells):
        for module, names in re.findall(
            r"^from ((?:bert_tf|export)[\w.]*) import (.+)$", text, re.MULTILINE
        ):
            for name in names.split(", "):
                # Modules, and what the demo makes its data of.
                is_there = f"::: {module}.{name}\n" in named or f"::: {module}.{name}." in named
                assert is_there or module == "bert_tf.demo", name


def test_what_is_looked_for_is_found():
    text = "`make demo`, `tests/a.py` and\nmake lint\n  bert-tf pretrain-data x; python -m export a"
    assert FILE.findall(text) == ["tests/a.py"]
    assert FILE.findall("runs/tests/a, my-docs/b, experiments/glue/*.yaml, (serving/)") == [
        "experiments/glue/*.yaml",
        "serving/",
    ]
    assert LINK.findall("[a](b.md#c-d), [e](#f), [g](https://h.i)") == ["b.md#c-d", "#f"]
    assert anchors("# A page\n## What isn't: x_y\n```\n# code\n```\n") == [
        "a-page",
        "what-isnt-x_y",
    ]
    assert TARGET.findall(text) == ["demo", "lint"]
    assert COMMAND.findall(text) == ["pretrain-data"]
    assert MODULE.findall(text) == ["export"]
