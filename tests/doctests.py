"""Finding the examples in docstrings, and running them."""

import ast
import contextlib
import doctest
import importlib
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


def has_example(node):
    """Whether the docstring of a function, or of a class or one of its methods, has an example."""
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    nodes = [node, *(methods if isinstance(node, ast.ClassDef) else [])]
    return any(">>> " in (ast.get_docstring(each) or "") for each in nodes)


def is_record(node):
    """Whether a definition is a class that only holds fields."""
    if not isinstance(node, ast.ClassDef):
        return False
    makers = [ast.unparse(each) for each in (*node.bases, *node.decorator_list)]
    return any("NamedTuple" in each or "dataclass" in each for each in makers) and not any(
        isinstance(each, ast.FunctionDef) for each in node.body
    )


def definitions(package):
    """(path, name, definition) of every public function and class of a package of bert_tf."""
    for path in MODULES:
        if path.is_relative_to(ROOT / "bert_tf" / package):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
                    yield path, f"{module_name(path).removeprefix('bert_tf.')}.{node.name}", node
