"""Imports point one way: no module of bert_tf imports one that imports it, not even in a function.

What a module imports is read from its source. An import of `a.b.c` also runs `a/__init__.py` and
`a/b/__init__.py`. The package `bert_tf` itself is left out: Python runs it before any of its
modules, and it imports nothing until a name of it is used.
"""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

from benchmarks import structure

ROOT = Path(__file__).parents[1]
TREES = structure.trees_of(ROOT)
GRAPH = structure.import_graph(TREES, types=False)


def test_imports_are_absolute():
    found = [node for tree in TREES.values() for node in ast.walk(tree)]
    assert not [each for each in found if isinstance(each, ast.ImportFrom) and each.level]


def test_there_are_no_circles():
    tuple(graphlib.TopologicalSorter(GRAPH).static_order())  # raises CycleError with the circle


def test_types_make_no_circles_either():
    found = structure.import_graph(TREES, types=True)
    tuple(graphlib.TopologicalSorter(found).static_order())


def test_the_graph_has_the_imports_in_functions_too():
    assert "bert_tf.runs.finetuning" in GRAPH["bert_tf.runs"]
    assert "bert_tf.runs" in GRAPH["bert_tf.cli.commands"]
    assert len(GRAPH) > 200


# From the bottom to the top; a room imports only from those to its left.
FOUNDATIONS = {"errors", "io", "encoder", "text", "checkpoints", "compat", "console"}
FOUNDATIONS |= {"dependencies"}


def room(module: str) -> str:
    return module.split(".")[1]


def test_the_foundations_know_no_tasks_and_no_runs():
    for module, found in GRAPH.items():
        if room(module) in FOUNDATIONS:
            assert {room(each) for each in found} <= FOUNDATIONS, module


def test_only_the_command_line_imports_experiments():
    found = {name for name, imported in GRAPH.items() if "experiments" in map(room, imported)}
    assert {each for each in found if room(each) != "experiments"} == {"bert_tf.cli.commands"}


def test_experiments_use_no_private_names_of_the_library():
    trees = [tree for name, tree in TREES.items() if name.startswith("bert_tf.experiments")]
    nodes = [each for tree in trees for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    assert not [alias.name for node in nodes for alias in node.names if alias.name[0] == "_"]


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
