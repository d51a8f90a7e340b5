"""Imports point one way: no module of bert_tf imports one that imports it, not even in a function.

What a module imports is read from its source. An import of `a.b.c` also runs `a/__init__.py` and
`a/b/__init__.py`. The package `bert_tf` itself is left out: Python runs it before any of its
modules, and it imports nothing until a name of it is used.
"""

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def sources() -> dict[str, Path]:
    """The files of the library by the names of their modules."""
    found = {}
    for name, folder in (("bert_tf", ROOT / "bert_tf"), ("bert_tf.export", ROOT / "export")):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            if parts[0] == "export":  # the link to the folder export
                continue
            stem = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join((name, *stem))] = path
    return found


SOURCES = sources()


def imports(tree: ast.AST, types: bool = False) -> Iterator[str]:
    """What a piece of code imports when it runs: `a.b` and, of `from a import b`, both.

    With `types`, what it imports for its types too.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in SOURCES else node.module
        yield from imports(node, types)


def packages(module: str) -> set[str]:
    """The packages that a module is in, without `bert_tf`."""
    parts = module.split(".")
    return {".".join(parts[:end]) for end in range(2, len(parts))}


def imported_by(module: str) -> set[str]:
    """The modules that run when `module` is imported, or when one of its functions runs."""
    direct = {name for name in imports(ast.parse(SOURCES[module].read_text())) if name in SOURCES}
    around = {package for name in direct for package in packages(name)} - packages(module)
    return (direct | around) - {module, "bert_tf"}


GRAPH = {module: imported_by(module) for module in SOURCES if module != "bert_tf"}


def test_there_are_no_circles():
    tuple(graphlib.TopologicalSorter(GRAPH).static_order())  # raises CycleError with the circle


def test_types_make_no_circles_either():
    graph = {
        module: {name for name in imports(ast.parse(path.read_text()), types=True)}
        for module, path in SOURCES.items()
        if module != "bert_tf"
    }
    found = {module: (names & GRAPH.keys()) - {module} for module, names in graph.items()}
    tuple(graphlib.TopologicalSorter(found).static_order())


def test_the_graph_has_the_imports_in_functions_too():
    assert "bert_tf.runs.finetuning" in GRAPH["bert_tf.runs"]
    assert "bert_tf.runs" in GRAPH["bert_tf.cli.commands"]
    assert len(GRAPH) > 200


# From the bottom to the top; a room imports only from those to its left.
FOUNDATIONS = {"errors", "io", "encoder", "text", "checkpoints", "compat", "console", "extras"}


def room(module: str) -> str:
    return module.split(".")[1]


def test_the_foundations_know_no_tasks_and_no_runs():
    for module, found in GRAPH.items():
        if room(module) in FOUNDATIONS:
            assert {room(each) for each in found} <= FOUNDATIONS, module


def test_importing_the_library_changes_no_environment_variable_and_reads_no_arguments():
    code = """
import os, sys
before = dict(os.environ)
class Refusing(list):
    def __getattribute__(self, name): raise AssertionError("sys.argv was read")
    def __getitem__(self, index): raise AssertionError("sys.argv was read")
    def __iter__(self): raise AssertionError("sys.argv was read")
    def __len__(self): raise AssertionError("sys.argv was read")
sys.argv = Refusing(sys.argv)
import bert_tf
assert dict(os.environ) == before, set(os.environ.items()) ^ set(before.items())
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
