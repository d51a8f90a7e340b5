"""How much there is to learn: lines, classes, members, files and names, counted from the sources.

    python -m benchmarks.structure
    python -m benchmarks.structure --before v0.2.0
    python -m benchmarks.structure --peers

Counts this checkout and, with --before, another commit, which is checked out into a temporary
folder. Two rows run code: a tiny classifier is fitted, and answers, in a process of its
own, and the files of bert_tf and export in which a function ran are counted.

With --peers, it counts only what a classifier has, and in the same way that of transformers (with
its Trainer and its pipeline), of sentence-transformers (a CrossEncoder; files of transformers count
too) and of KerasHub, with the same texts. That requires the extra `bench`.
"""

import argparse
import ast
import collections
import contextlib
import fnmatch
import importlib.util
import inspect
import io
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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
TEXTS, LABELS = ["lovely", "awful"] * 4, ["good", "bad"] * 4
NUMBERS = [int(label == "good") for label in LABELS]
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] lovely awful".split()


def files_in(call: Callable[[], Any], folders: Sequence[str]) -> set[str]:
    """The files in some folders in which a function runs while `call` does."""
    used: set[str] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        used.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {path for path in map(os.path.realpath, used) if path.startswith(tuple(folders))}


def figures_of(
    model: Any,
    package: str,
    folders: Sequence[str],
    fit: Callable[[], Any],
    predict: Callable[[], Any],
) -> dict[str, Any]:
    """The classes of a package that a model is made of, the names in their bodies, and the number
    of files in some folders in which a function runs in training and in answering.
    """
    own = [cls for cls in type(model).__mro__ if cls.__module__.startswith(package)]
    return {
        "classes": [cls.__name__ for cls in own],
        "names": len({name for cls in own for name in vars(cls) if not name.startswith("__")}),
        "fit": len(files_in(fit, folders)),
        "predict": len(files_in(predict, folders)),
    }


# A program that prints, as JSON, the figures of a classifier of bert_tf.
_PROGRAM = f"""
import json, os, sys
from collections.abc import Callable, Sequence
from typing import Any
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
root = os.path.realpath(os.getcwd())
sys.path.insert(0, root)
import keras
import bert_tf

{inspect.getsource(files_in)}
{inspect.getsource(figures_of)}
texts, labels = {TEXTS}, {LABELS}
sizes = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
encoder = bert_tf.Encoder(bert_tf.EncoderConfig({len(WORDS)}, **sizes))
model = bert_tf.TextClassifier(encoder, bert_tf.Tokenizer({WORDS}))
folders = [os.path.join(root, name, "") for name in ("bert_tf", "export")]
fit = lambda: model.fit(texts, labels, verbose=0)
predict = lambda: model.predict(texts, verbose=0)
print(json.dumps(figures_of(model, "bert_tf", folders, fit, predict)))
"""


def main(argv: list[str] | None = None) -> int:
    """Counts; returns the exit code."""
    parser = module_parser("benchmarks.structure", __doc__)
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--before", metavar="COMMIT", help="a commit to count too")
    other.add_argument("--peers", action="store_true", help="compare a classifier with theirs")
    return run("structure", parser, argv, _show, "stopped")


def _show(arguments: argparse.Namespace) -> None:
    if arguments.peers:
        _show_peers()
        return
    columns = {"now": counts(ROOT)}
    if arguments.before:
        with tempfile.TemporaryDirectory() as folder:
            _check_out(arguments.before, Path(folder, "before"))
            columns = {arguments.before: counts(Path(folder, "before"))} | columns
            moved = _moved(arguments.before, Path(folder, "before"))
            new = _new_tests(arguments.before)
    table = Table("", *columns)
    for row in columns["now"]:
        table.add_row(row, *(str(column.get(row, "")) for column in columns.values()))
    Console().print(table)
    if arguments.before:
        print(f"{moved} of the lines of the library were not saved: they are in experiments/ now")
        print(f"{new} of the lines of the tests are in files that {arguments.before} did not have")


def _check_out(commit: str, folder: Path) -> None:
    for command in (
        ["git", "clone", "--quiet", "--shared", str(ROOT), str(folder)],
        ["git", "-C", str(folder), "checkout", "--quiet", "--detach", commit],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise UserError(f"{commit} cannot be checked out ({done.stderr.strip()[:200]})")


def counts(root: Path) -> dict[str, object]:
    """The counts of a checkout, by their names in the table."""
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
        "of these, in one family": _members_of_each(trees),
        "lines of the outside family": _lines(root, [str(each) for each in outside]),
        "modules that it imports": len(imports),
        "names of two classes": _shared_names(trees),
        'docstrings that say only "See …"': sum(map(_only_see, trees.values())),
        "overrides with another signature": _override_comments(library),
    }


def _moved(commit: str, before: Path) -> int:
    """The lines of the files that were the library's at a commit and are in experiments/ now."""
    renamed = [line.split("\t")[1:] for line in _changed(commit, "R", "*.py")]
    library = ("bert_tf/", "export/")
    moved = [old for old, new in renamed if new.startswith("experiments/")]
    return _lines(before, [old for old in moved if old.startswith(library)])


def _new_tests(commit: str) -> int:
    """The lines of the tests in files that a commit did not have, under any name."""
    return _lines(ROOT, [line.split("\t")[1] for line in _changed(commit, "A", "tests/*.py")])


def _changed(commit: str, kind: str, files: str) -> list[str]:
    """The changes of one kind since a commit, as lines of `git diff --name-status`."""
    options = ("--find-renames", f"--diff-filter={kind}", "--name-status", commit, "--", files)
    listed = ["git", "-C", str(ROOT), "diff", *options]
    return subprocess.run(listed, capture_output=True, text=True, check=True).stdout.splitlines()


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


def _show_peers() -> None:
    columns = {"bert_tf": _of_a_model(ROOT)}
    for name, (packages, _) in _PEERS.items():
        if missing := [each for each in packages if not importlib.util.find_spec(each)]:
            raise UserError(f"{name} is not installed; install {', '.join(missing)}")
        # A process of its own: other peers would reuse what one peer has imported.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            columns[name] = pool.apply(_of_a_peer, (name,))
    table = Table("", *columns)
    table.add_row("classes", *(str(len(each["classes"])) for each in columns.values()))
    rows = {
        "names in their bodies": "names",
        "files that run in training": "fit",
        "files that run in answering": "predict",
    }
    for row, key in rows.items():
        table.add_row(row, *(str(each[key]) for each in columns.values()))
    Console().print(table)
    for name, each in columns.items():
        print(f"{name}: {', '.join(each['classes'])}")


def _of_a_peer(name: str) -> dict:
    """The figures that `_PROGRAM` prints, for a peer's classifier."""
    packages, make = _PEERS[name]
    modules = [importlib.import_module(each) for each in packages]
    folders = [os.path.join(os.path.realpath(m.__path__[0]), "") for m in modules]
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        Path(folder, "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
        model, fit, predict = make(folder)
        return figures_of(model, packages[0], folders, fit, predict)


def _tiny_bert(folder: str) -> tuple:
    import transformers

    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    return config, transformers.BertTokenizer(f"{folder}/vocab.txt")


# Arguments of transformers' and sentence-transformers' trainers: one epoch, without files.
_TRAINER = {"report_to": "none", "num_train_epochs": 1, "save_strategy": "no", "use_cpu": True}


def _of_transformers(folder: str) -> tuple:
    import datasets
    import transformers

    config, tokenizer = _tiny_bert(folder)
    model = transformers.BertForSequenceClassification(config)

    def fit() -> None:
        rows = datasets.Dataset.from_dict({"text": TEXTS, "labels": NUMBERS})
        rows = rows.map(lambda row: tokenizer(row["text"]), remove_columns="text")
        settings = transformers.TrainingArguments(f"{folder}/out", **_TRAINER)
        transformers.Trainer(
            model, settings, train_dataset=rows, processing_class=tokenizer
        ).train()

    def predict() -> None:
        ask = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
        ask(TEXTS)

    return model, fit, predict


def _of_sentence_transformers(folder: str) -> tuple:
    import datasets
    import sentence_transformers
    import transformers
    from sentence_transformers import cross_encoder

    config, tokenizer = _tiny_bert(folder)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model = sentence_transformers.CrossEncoder(folder, num_labels=2, device="cpu", max_length=16)

    def fit() -> None:
        rows = datasets.Dataset.from_dict({"text_a": TEXTS, "text_b": TEXTS, "label": NUMBERS})
        settings = cross_encoder.CrossEncoderTrainingArguments(f"{folder}/out", **_TRAINER)
        loss = cross_encoder.losses.CrossEntropyLoss(model)
        cross_encoder.CrossEncoderTrainer(model, settings, train_dataset=rows, loss=loss).train()

    return model, fit, lambda: model.predict([*zip(TEXTS, TEXTS, strict=True)])


def _of_keras_hub(folder: str) -> tuple:
    from keras_hub import models

    tokenizer = models.BertTokenizer(f"{folder}/vocab.txt", lowercase=True)
    preprocessor = models.BertTextClassifierPreprocessor(tokenizer, sequence_length=8)
    backbone = models.BertBackbone(len(WORDS), 1, 2, 8, 16, max_sequence_length=8)
    model = models.BertTextClassifier(backbone, 2, preprocessor=preprocessor)
    return (
        model,
        lambda: model.fit(TEXTS, NUMBERS, verbose=0),
        lambda: model.predict(TEXTS, verbose=0),
    )


# The packages of each peer, whose files count; the class is from the first. The function takes a
# folder with a vocabulary, and gives a classifier and functions that train it and let it answer.
_PEERS: dict[str, tuple[tuple[str, ...], Callable[[str], tuple]]] = {
    "transformers": (("transformers",), _of_transformers),
    "sentence-transformers": (
        ("sentence_transformers", "transformers"),
        _of_sentence_transformers,
    ),
    "KerasHub": (("keras_hub",), _of_keras_hub),
}


def _imports(tree: ast.AST, modules: Collection[str], types: bool) -> Iterator[str]:
    """The modules that a piece of code imports; `from a import b` gives `a.b` if it is a module."""
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
    """The groups of modules in which each imports every other one, directly or through others.

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


def _base_members(trees: dict[str, ast.Module]) -> dict[str, ast.stmt]:
    """The members of the classes that every family's model extends."""
    classes = {node.name: node for _, node in _classes(trees)}
    known = [each for each in ("TaskInterface", "StringTraining", "TaskModel") if each in classes]
    return {name: node for cls in known for name, node in _members(classes[cls])}


def _members_of_each(trees: dict[str, ast.Module]) -> str:
    """How many base members the model of a family defines: the fewest, the most, the median."""
    base, counts = _base_members(trees).keys(), []
    for module, tree in trees.items():
        if module.startswith("bert_tf.tasks.") and module.endswith(".model"):
            classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
            counts.append(max(len(base & dict(_members(each)).keys()) for each in classes))
    return f"{min(counts)} to {max(counts)}, median {np.median(counts):g}"


def _family_members(trees: dict[str, ast.Module]) -> tuple[int, int]:
    """Numbers of abstract and of other members of the classes that a family's model extends.

    The others are public attributes and methods that some family overrides.
    """
    members = _base_members(trees)
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
