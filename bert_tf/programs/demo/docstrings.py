"""Real English that is already on every machine: the documentation strings of installed libraries.

The source files are parsed, never imported, so reading them runs none of their code. The list of
libraries is fixed and the files are read in sorted order, so the same versions of Python and of the
libraries give the same text.
"""

import ast
import json
import os
import signal
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bert_tf.errors import UserError
from bert_tf.programs.demo.prose import sentences

STANDARD_LIBRARY = "python"
LIBRARIES = (STANDARD_LIBRARY, "numpy", "scipy", "sklearn", "tensorflow", "keras")
# The number of files for which another process saves time.
_FILES = 200

# Tests describe themselves, vendored folders hold the text of others, `_api` only repeats names.
_SKIPPED_FOLDERS = frozenset(
    {"__pycache__", "_api", "_external", "_vendor", "externals", "extern", "idlelib", "lib2to3"}
    | {"site-packages", "dist-packages", "test", "testing", "tests", "third_party"}
)
# An old copy of another library on the list, folders with much code and hardly any prose, and
# folders that later versions no longer have.
_SKIPPED_PATHS = frozenset(
    {"numpy/distutils", "python/distutils"}
    | {"tensorflow/python/keras", "tensorflow/compiler", "tensorflow/core", "tensorflow/include"}
    | {"tensorflow/lite", "tensorflow/tools"}
)


@dataclass(frozen=True)
class Passage:
    """The prose of one documentation string.

    Attributes:
        library: one of `LIBRARIES`.
        module: the source file below the library's folder, as `library/folder/file.py`.
        sentences: its English sentences in order, without markup.
    """

    library: str
    module: str
    sentences: tuple[str, ...]


def harvest(
    folders: Mapping[str, Path] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Passage]:
    """Reads the documentation strings of the libraries, in the order of libraries and file names.

    Repeated documentation strings are left out, also those of another library. Files that cannot be
    parsed are skipped. Every processor reads a part of the files.

    Args:
        folders: library name -> folder of its sources; the installed `LIBRARIES` if not given.
        on_progress: called after each file with the number of files read and of all files.

    Raises:
        UserError: a library of the list is not installed.
    """
    folders = installed_folders() if folders is None else folders
    files = [
        (library, folder, file)
        for library, folder in folders.items()
        for file in source_files(library, folder)
    ]
    passages: list[Passage] = []
    seen: set[str] = set()
    read = _in_processes([file for *_, file in files])
    for number, ((library, folder, file), found) in enumerate(zip(files, read, strict=True), 1):
        module = f"{library}/{file.relative_to(folder).as_posix()}"
        for docstring, prose in found:
            if docstring not in seen:
                seen.add(docstring)
                if prose:
                    passages.append(Passage(library, module, tuple(prose)))
        if on_progress:
            on_progress(number, len(files))
    return passages


def _in_processes(files: Sequence[Path]) -> Iterator[list[tuple[str, list[str]]]]:
    """The documentation strings of each file with their sentences, read on every processor.

    The processes run this module as a program, since those of `multiprocessing` cannot be started
    from an interactive session or a notebook.
    """
    count = max(1, min(len(os.sched_getaffinity(0)), len(files) // _FILES))
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(count)
    ]
    try:
        for number, worker in enumerate(workers):
            assert worker.stdin is not None
            worker.stdin.write(json.dumps([str(file) for file in files[number::count]]).encode())
            worker.stdin.close()
        for number in range(len(files)):
            output = workers[number % count].stdout
            assert output is not None
            yield json.loads(output.readline())
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def _work() -> None:
    """Reads a list of files as JSON, and prints a line of JSON for each of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one handles Ctrl-C
    for file in json.load(sys.stdin):
        print(json.dumps([(each, sentences(each)) for each in docstrings(Path(file))]), flush=True)


def installed_folders() -> dict[str, Path]:
    """The folder of each library's sources, found without importing the library.

    Raises:
        UserError: a library is not installed.
    """
    folders = {}
    for library in LIBRARIES:
        if library == STANDARD_LIBRARY:
            folders[library] = Path(sysconfig.get_path("stdlib"))
            continue
        spec = find_spec(library)
        if spec is None or not spec.submodule_search_locations:
            raise UserError(
                f"the demo's text comes from installed libraries, and {library} is not installed; "
                f"run: pip install {library}"
            )
        folders[library] = Path(spec.submodule_search_locations[0])
    return folders


def source_files(library: str, folder: Path) -> list[Path]:
    """The library's own Python files, sorted by their path.

    Tests, vendored code and modules that TensorFlow's build generates (`gen_*.py`) are left out.
    """
    found: list[Path] = []
    for place, subfolders, names in os.walk(folder):
        path = Path(place).relative_to(folder)
        subfolders[:] = [
            name
            for name in subfolders
            if name not in _SKIPPED_FOLDERS
            and (Path(library) / path / name).as_posix() not in _SKIPPED_PATHS
        ]
        found.extend(
            path / name
            for name in names
            if name.endswith(".py")
            and not name.startswith(("test_", "conftest", "gen_"))
            and not name.endswith("_test.py")
        )
    if library == STANDARD_LIBRARY:
        # Python distributions add files of their own to the folder of the standard library.
        known = sys.stdlib_module_names
        found = [path for path in found if path.parts[0].removesuffix(".py") in known]
    return [folder / path for path in sorted(found, key=Path.as_posix)]


def docstrings(file: Path) -> Iterator[str]:
    """The documentation strings of a source file, unchanged, from top to bottom.

    A file that is no valid Python of this version, or not in the encoding it declares, has none.
    Strings given to a call of `add_newdoc` count: that is how NumPy documents its compiled
    functions.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes such as "\d" in the strings of others
            tree = ast.parse(file.read_bytes())
    except (OSError, RecursionError, SyntaxError, ValueError):
        return
    yield from _docstrings(tree)


def _docstrings(node: ast.AST) -> Iterator[str]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    if isinstance(node, documented) and (docstring := ast.get_docstring(node, clean=False)):
        yield docstring
    body = getattr(node, "body", [])
    for child in body if isinstance(body, list) else []:
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Call):
            called = child.value.func
            if getattr(called, "attr", getattr(called, "id", "")) == "add_newdoc":
                constants = (c.value for c in ast.walk(child) if isinstance(c, ast.Constant))
                yield from (value for value in constants if isinstance(value, str))
        yield from _docstrings(child)


if __name__ == "__main__":
    _work()
