"""How much there is to learn: lines, classes, members, files and names, counted from the sources.

    python -m benchmarks.structure
    python -m benchmarks.structure --before v0.2.0

Counts this checkout and, with --before, another commit, which is checked out into a temporary
folder. Two rows run code: a tiny classifier is fitted, and answers, in a process of its
own, and the files of bert_tf and export in which a function ran are counted.
"""

import argparse
import ast
import collections
import fnmatch
import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse.csgraph import connected_components

from bert_tf.cli.command import module_parser, run
from bert_tf.errors import UserError

ROOT = Path(__file__).parents[1]
# The folders that bert_tf has a link to: they are imported as bert_tf.export and so on.
LINKED = ("export", "experiments")
# Files of capabilities that bert_tf did not have when the shape of a task was decided (264e5f3):
# other architectures, formats and sources, buckets, serving, and new families and ways to train.
LATER = (
    *(f"bert_tf/asking/{name}.py" for name in ("mine", "session")),
    *(f"bert_tf/checkpoints/{name}.py" for name in ("growth", "keras_hub", "keys", "peft")),
    *("bert_tf/checkpoints/huggingface_*s.py", "bert_tf/config/imported.py", "bert_tf/starting.py"),
    *("bert_tf/data/arrow.py", "bert_tf/data/mapped.py", "bert_tf/interpret/data_quality.py"),
    *("bert_tf/io/locks.py", "bert_tf/io/remote.py", "bert_tf/io/stores.py"),
    *("bert_tf/models/hub_layer.py", "bert_tf/retrieval/mining.py", "bert_tf/serve/*.py"),
    *(f"bert_tf/runs/{name}.py" for name in ("adapting", "extending", "publishing", "study")),
    *("bert_tf/tasks/classification/few_shot.py", "bert_tf/tasks/embedding/small_vectors.py"),
    *(
        "bert_tf/tasks/long_texts.py",
        "bert_tf/tasks/uncertainty.py",
        "bert_tf/tasks/zero_shot/*.py",
    ),
    *("bert_tf/tasks/multi_target_regression/*.py", "bert_tf/tasks/token_classification/span*.py"),
    *("bert_tf/text/unicode_rules.py", "bert_tf/training/adapter.py"),
    *("bert_tf/training/callbacks.py", "export/calibration.py"),
    *("export/integer_products.py", "export/onnx_file.py"),
)
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
            moved = _moved(arguments.before, Path(folder, "before"))
    table = Table("", *columns)
    for row in columns["now"]:
        table.add_row(row, *(str(column.get(row, "")) for column in columns.values()))
    Console().print(table)
    if arguments.before:
        print(f"{moved} of the lines of the library were not saved: they are in experiments/ now")


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
    files = {folder: _files(root, folder) for folder in ("bert_tf", *LINKED, "tests")}
    library = sources(root)
    trees = trees_of(root)
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
        "of these, in files of later capabilities": _lines(
            root,
            [
                each
                for each in files["bert_tf"] + files["export"]
                if any(fnmatch.fnmatch(each, pattern) for pattern in LATER)
            ],
        ),
        "lines of the experiments": _lines(root, files["experiments"]),
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


def _moved(commit: str, before: Path) -> int:
    """The lines of the files that were the library's at a commit and are in experiments/ now."""
    options = ("--find-renames", "--diff-filter=R", "--name-status", commit, "--", "*.py")
    listed = ["git", "-C", str(ROOT), "diff", *options]
    done = subprocess.run(listed, capture_output=True, text=True, check=True)
    renamed = [line.split("\t")[1:] for line in done.stdout.splitlines()]
    library = ("bert_tf/", "export/")
    moved = [old for old, new in renamed if new.startswith("experiments/")]
    return _lines(before, [old for old in moved if old.startswith(library)])


def _files(root: Path, folder: str) -> list[str]:
    listed = ["git", "-C", str(root), "ls-files", f"{folder}/*.py"]
    return subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()


def _lines(root: Path, files: list[str]) -> int:
    return sum(len((root / each).read_text(encoding="utf-8").splitlines()) for each in files)


def sources(root: Path) -> dict[str, Path]:
    """The files of the library and of the experiments by the names of their modules."""
    found = {}
    for folder in ("bert_tf", *LINKED):
        for path in (root / folder).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            if parts[0] in LINKED:
                parts = ("bert_tf", *parts)
            elif parts[1] in LINKED:  # the link to that folder
                continue
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
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


def circles(graph: Mapping[str, Collection[str]]) -> list[set[str]]:
    """The groups of modules in which each imports each other one, through others or itself.

    >>> sorted(map(sorted, circles({"a": {"b"}, "b": {"a"}, "c": {"a"}})))
    [['a', 'b']]
    """
    names = [*graph]
    number = {name: i for i, name in enumerate(names)}
    edges = np.zeros([len(names)] * 2, bool)
    for name, found in graph.items():
        edges[number[name], [number[each] for each in found if each in number]] = True
    _, groups = connected_components(edges, connection="strong")
    members = collections.defaultdict(set)
    for name, group in zip(names, groups, strict=True):
        members[group].add(name)
    return [each for each in members.values() if len(each) > 1]


def import_graph(trees: Mapping[str, ast.Module], types: bool) -> dict[str, set[str]]:
    """The modules of the library that each of them imports, also in functions.

    An import of `a.b.c` also runs `a/__init__.py` and `a/b/__init__.py`. The package `bert_tf` is
    left out: Python runs it before all others.

    Args:
        trees: the modules.
        types: whether imports for types count, which run no package.
    """
    graph = {}
    for module, tree in trees.items():
        if module != "bert_tf":
            found = {each for each in _imports(tree, trees, types) if each in trees}
            if not types:
                found |= {each for name in found for each in _packages(name)} - _packages(module)
            graph[module] = found - {module, "bert_tf"}
    return graph


def trees_of(root: Path) -> dict[str, ast.Module]:
    """The syntax trees of the files of the library, by the names of their modules."""
    return {
        name: ast.parse(path.read_text(encoding="utf-8")) for name, path in sources(root).items()
    }


def _circle_sizes(trees: Mapping[str, ast.Module], types: bool) -> str:
    sizes = sorted(map(len, circles(import_graph(trees, types))), reverse=True)
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
