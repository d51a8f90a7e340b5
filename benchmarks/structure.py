"""How much there is to learn: lines, classes, members, files and names, counted from the sources.

    python -m benchmarks.structure
    python -m benchmarks.structure --before v0.2.0

Counts the checkout, and with --before another commit beside it, which is checked out into a
temporary folder. Two rows run code: a tiny classifier is fitted, and answers, in a process of its
own, and the files of bert_tf and export in which a function ran are counted.
"""

import argparse
import ast
import collections
import graphlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bert_tf.cli.command import module_parser, run
from bert_tf.errors import UserError

ROOT = Path(__file__).parents[1]
# A program that prints, as JSON, the classes before keras.Model of a classifier, the names in
# their bodies, and the files in which a function runs in `fit` and in `predict`.
_PROGRAM = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
root = os.getcwd()
sys.path.insert(0, root)
import keras
import bert_tf

tokenizer = bert_tf.Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lovely awful".split())
config = bert_tf.EncoderConfig(7, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
model = bert_tf.TextClassifier(bert_tf.Encoder(config), tokenizer)
before = [cls for cls in type(model).__mro__ if cls.__module__.startswith("bert_tf")]
names = {name for cls in before for name in vars(cls) if not name.startswith("__")}


def files_of(call):
    used = set()

    def note(frame, event, argument):
        used.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    paths = {os.path.relpath(os.path.realpath(each), root) for each in used}
    return sum(path.startswith(("bert_tf/", "export/")) for path in paths)


texts, labels = ["lovely", "awful"] * 4, ["good", "bad"] * 4
found = {
    "classes": [cls.__name__ for cls in before],
    "names": len(names),
    "fit": files_of(lambda: model.fit(texts, labels, verbose=0)),
    "predict": files_of(lambda: model.predict(texts, verbose=0)),
}
print(json.dumps(found))
"""


def main(argv: list[str] | None = None) -> int:
    """Counts; returns the exit code."""
    parser = module_parser("benchmarks.structure", __doc__)
    parser.add_argument("--before", metavar="COMMIT", help="a commit to count too")
    return run("structure", parser, argv, _show, "stopped")


def _show(arguments: argparse.Namespace) -> None:
    columns = {"now": counts(ROOT)}
    if arguments.before:
        with tempfile.TemporaryDirectory() as folder:
            _check_out(arguments.before, Path(folder, "before"))
            columns = {arguments.before: counts(Path(folder, "before"))} | columns
    table = Table("", *columns)
    for row in columns["now"]:
        table.add_row(row, *(str(column.get(row, "")) for column in columns.values()))
    Console().print(table)


def _check_out(commit: str, folder: Path) -> None:
    for command in (
        ["git", "clone", "--quiet", "--shared", str(ROOT), str(folder)],
        ["git", "-C", str(folder), "checkout", "--quiet", "--detach", commit],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise UserError(f"{commit} cannot be checked out ({done.stderr.strip()[:200]})")


def counts(root: Path) -> dict[str, object]:
    """What is counted of a checkout, by its name in the table."""
    files = {folder: _files(root, folder) for folder in ("bert_tf", "export", "tests")}
    library = sources(root)
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in library.items()}
    of_model = _of_a_model(root)
    outside = [root / each for each in files["tests"] if "/outside/" in each]
    imports = {
        name
        for path in outside
        for name in _imports(ast.parse(path.read_text(encoding="utf-8")), library, types=True)
        if name.split(".")[0] == "bert_tf"
    }
    return {
        "lines of the library": _lines(root, files["bert_tf"] + files["export"]),
        "lines of the tests": _lines(root, files["tests"]),
        "files below 40 lines": sum(
            len((root / each).read_text(encoding="utf-8").splitlines()) < 40
            for each in files["bert_tf"] + files["export"]
            if not each.endswith("__init__.py")
        ),
        "classes before keras.Model": f"{len(of_model['classes'])}: "
        + ", ".join(of_model["classes"]),
        "names in their bodies": of_model["names"],
        "files that run in fit": of_model["fit"],
        "files that run in predict": of_model["predict"],
        "circles of imports": _circle_sizes(trees, types=False),
        "circles of imports, with those for types": _circle_sizes(trees, types=True),
        "members that a family defines": " + ".join(map(str, _family_members(trees))),
        "lines of the outside family": _lines(root, [str(each) for each in outside]),
        "modules that it imports": len(imports),
        "names of two classes": _shared_names(trees),
        'docstrings that say only "See …"': sum(map(_only_see, trees.values())),
        "overrides with another signature": _override_comments(library),
    }


def _files(root: Path, folder: str) -> list[str]:
    listed = ["git", "-C", str(root), "ls-files", f"{folder}/*.py"]
    return subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()


def _lines(root: Path, files: list[str]) -> int:
    return sum(len((root / each).read_text(encoding="utf-8").splitlines()) for each in files)


def sources(root: Path) -> dict[str, Path]:
    """The files of the library by the names of their modules."""
    found = {}
    for name, folder in (("bert_tf", "bert_tf"), ("bert_tf.export", "export")):
        for file in _files(root, folder):
            parts = Path(file).relative_to(folder).with_suffix("").parts
            stem = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join((name, *stem))] = root / file
    return found


def _of_a_model(root: Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=root, capture_output=True, text=True
    )
    if done.returncode:
        raise UserError(f"the classifier of {root} could not be fitted: {done.stderr[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _imports(tree: ast.AST, modules: Collection[str], types: bool) -> Iterator[str]:
    """The modules that a piece of code imports: of `from a import b`, `a.b` if that is one."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules else node.module
        yield from _imports(node, modules, types)


def _packages(module: str) -> set[str]:
    """The packages that a module is in, without `bert_tf`."""
    parts = module.split(".")
    return {".".join(parts[:end]) for end in range(2, len(parts))}


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The groups of modules of which each reaches each other; Tarjan's algorithm.

    >>> sorted(map(sorted, circles({"a": {"b"}, "b": {"a"}, "c": {"a"}})))
    [['a', 'b']]
    """
    try:
        graphlib.TopologicalSorter(graph).prepare()
        return []
    except graphlib.CycleError:
        pass
    reached = {node: _reached(graph, node) for node in graph}
    groups: list[set[str]] = []
    for node in graph:
        group = {other for other in reached[node] if node in reached.get(other, ())}
        if group and group not in groups:
            groups.append(group)
    return groups


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += graph.get(node, ())
    return found


def _circle_sizes(trees: Mapping[str, ast.Module], types: bool) -> str:
    graph = {}
    for module, tree in trees.items():
        if module != "bert_tf":  # Python runs it before all others
            found = {each for each in _imports(tree, trees, types) if each in trees}
            if not types:  # what is imported for types alone runs no package
                found |= {each for name in found for each in _packages(name)} - _packages(module)
            graph[module] = found - {module, "bert_tf"}
    sizes = sorted(map(len, circles(graph)), reverse=True)
    return f"{len(sizes)}" + (f" of {', '.join(map(str, sizes))} files" if sizes else "")


def _classes(trees: dict[str, ast.Module]) -> Iterator[tuple[str, ast.ClassDef]]:
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                yield module, node


def _family_members(trees: dict[str, ast.Module]) -> tuple[int, int]:
    """Abstract members of the classes that a family's model extends, and the others of them.

    The others are public attributes and methods that some family overrides.
    """
    classes = {node.name: node for _, node in _classes(trees)}
    known = [each for each in ("TaskInterface", "StringTraining", "TaskModel") if each in classes]
    members = {name: node for cls in known for name, node in _members(classes[cls])}
    overridden = {
        name
        for module, node in _classes(trees)
        if module.startswith("bert_tf.tasks.") and module.count(".") > 2
        for name, _ in _members(node)
    }
    abstract = {
        name
        for name, node in members.items()
        if isinstance(node, ast.FunctionDef)
        and any("abstractmethod" in ast.unparse(each) for each in node.decorator_list)
    }
    return len(abstract), len((members.keys() & overridden) - abstract)


def _members(node: ast.ClassDef) -> Iterator[tuple[str, ast.stmt]]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef):
            names = [each.name]
        elif isinstance(each, ast.AnnAssign):
            names = [ast.unparse(each.target)]
        elif isinstance(each, ast.Assign):
            names = [ast.unparse(target) for target in each.targets]
        else:
            continue
        yield from ((name, each) for name in names if not name.startswith("__"))


def _shared_names(trees: dict[str, ast.Module]) -> str:
    places = collections.defaultdict(set)
    for module, node in _classes(trees):
        if not node.name.startswith("_"):
            places[node.name].add(module)
    shared = sorted(name for name, modules in places.items() if len(modules) > 1)
    return f"{len(shared)}: {', '.join(shared)}"


def _only_see(tree: ast.Module) -> int:
    return sum(
        (ast.get_docstring(node) or "").startswith("See `")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    )


def _override_comments(library: dict[str, Path]) -> int:
    return sum(
        path.read_text(encoding="utf-8").count("type: ignore[override]")
        for path in library.values()
    )


if __name__ == "__main__":
    sys.exit(main())
