"""What README.md and the pages under docs/ name is there: pages, files, modules, commands."""

import doctest
import importlib
import json
import re
import runpy
import tomllib
from pathlib import Path

import configuration_page
import markdown_text
import pages
import pytest

import bert_tf
from bert_tf.cli.parser import main

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "serving" / "README.md", *sorted(DOCS.rglob("*.md"))]

CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^):\s]+)\)")
FOLDERS = "bert_tf|benchmarks|docs|experiments|export|serving|tests"
# One of our folders and what follows, where it is not itself part of a longer path.
FILE = re.compile(rf"(?<![\w./-])(?:{FOLDERS})/(?:[\w*-]+(?:[./][\w*-]+)*/?)?")
MODULE = re.compile(rf"python -m ((?:{FOLDERS})\b[\w.]*)")
COMMAND = re.compile(r"bert-tf ([a-z]+(?:-[a-z]+)*)")
TARGET = re.compile(r"(?:^|`)make ([a-z-]+)", re.MULTILINE)


def anchors(text: str) -> list[str]:
    """The anchors of a page's headings; links to the headings end in them."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", text), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings]


def as_shown(page: Path) -> str:
    """The text of a page, on the site if it belongs to that."""
    page = page.resolve()
    text = page.read_text()
    if not page.is_relative_to(DOCS):
        return text
    return pages.markdown(page.relative_to(DOCS).with_suffix("").as_posix(), text)


each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


@each_page
def test_links_lead_somewhere(page):
    for link in LINK.findall(CODE.sub("", page.read_text())):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not heading or heading in anchors(as_shown(target)), link


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
    found = {
        path.relative_to(DOCS).with_suffix("").as_posix()
        for path in DOCS.rglob("*")
        if path.suffix in pages.SUFFIXES and not path.is_relative_to(DOCS / "_extensions")
    }
    shown = ["index"]
    for folder in pages.MENU:
        home = f"{folder}/index".lstrip("/") if folder != "reference/python" else folder
        assert home in found and pages.folder_of(home) == folder
        lines = pages.markdown(home, (DOCS / f"{home}.md").read_text()).splitlines()
        shown += [page for page in pages.menu(folder) if f"/{page}" in lines]
    assert len(shown) == len({*shown})
    assert {*shown} == found


def test_notebooks_are_shown_and_not_run_again():
    assert runpy.run_path(str(DOCS / "conf.py"))["nb_execution_mode"] == "off"


@pytest.mark.parametrize("module", [configuration_page, markdown_text, pages])
def test_examples_of_the_extensions_are_right(module):
    failed, tried = doctest.testmod(module)
    assert tried and not failed


def test_the_site_is_built_by_exact_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert all("==" in each for each in project["optional-dependencies"]["docs"])


def names_in_the_reference() -> list[str]:
    """What the pages of the Python reference have autodoc describe."""
    folder = DOCS / "reference"
    text = "".join(
        each.read_text() for each in (folder / "python.md", *(folder / "python").glob("*.md"))
    )
    return re.findall(r"^\.\. auto(?:class|exception|function):: (\S+)$", text, re.MULTILINE)


def test_the_reference_has_every_public_name_once_and_none_that_is_not_there():
    named = names_in_the_reference()
    assert len(named) == len({*named})
    assert {f"bert_tf.{name}" for name in bert_tf.__all__} <= {*named}
    for name in named:
        module, _, thing = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), thing)), name


def test_the_reference_has_what_the_pages_import():
    named = names_in_the_reference()
    cells = "".join(
        "".join(cell["source"]) + "\n"
        for path in DOCS.rglob("*.ipynb")
        for cell in json.loads(path.read_text())["cells"]
    )
    for text in (*(page.read_text() for page in PAGES), cells):
        for module, names in re.findall(
            r"^from ((?:bert_tf|export)[\w.]*) import (.+)$", text, re.MULTILINE
        ):
            for name in names.split(", "):
                # Modules may be imported, and so may the sources of the demo's data.
                is_there = any(f"{each}.".startswith(f"{module}.{name}.") for each in named)
                assert is_there or module == "bert_tf.experiments.demo", name


def test_the_patterns_find_what_they_look_for():
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
