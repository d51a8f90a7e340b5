"""Finding the examples in docstrings, and running them."""

import ast
import contextlib
import doctest
import importlib
import inspect
import pydoc
import re
from pathlib import Path

from benchmarks import structure

ROOT = Path(__file__).resolve().parents[1]
# `rglob` does not follow links: `bert_tf/export` and `bert_tf/experiments`.
MODULES = sorted(
    path
    for folder in ("bert_tf", *(f"bert_tf/{name}" for name in structure.LINKED))
    for path in (ROOT / folder).rglob("*.py")
)


def module_name(path):
    """The name by which the module of a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements(path):
    """How many statements the examples of a file have."""
    text = path.read_text(encoding="utf-8")
    if ">>> " not in text:
        return 0
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return sum(
        len(doctest.DocTestParser().get_examples(ast.get_docstring(node) or ""))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented)
    )


def with_examples():
    """The files that have examples."""
    return [path for path in MODULES if statements(path)]


def check(path, folder):
    """Runs all examples of a file in an empty folder, so that they may write small files there."""
    module = importlib.import_module(module_name(path))
    with contextlib.chdir(folder):
        found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found == (0, statements(path))


def documented():
    """The functions and classes that the pages of docs/reference/python/ name."""
    pages = (ROOT / "docs" / "reference" / "python").glob("*.md")
    directive = re.compile(r"^\.\. auto(?:function|class):: (\S+)", re.MULTILINE)
    return sorted({name for page in pages for name in directive.findall(page.read_text("utf-8"))})


def has_example(name):
    """Whether the docstring of a function, or of a class or one of its methods, has an example."""
    named = pydoc.locate(name)
    methods = vars(named).values() if inspect.isclass(named) else []
    return any(">>> " in (inspect.getdoc(each) or "") for each in (named, *methods))
