"""Real English that is already on every machine: the documentation strings of installed libraries.

The source files are parsed, never imported, so reading them runs none of their code. The list of
libraries is fixed and the files are read in sorted order, so the same versions of Python and of the
libraries give the same text.
"""

import ast
import multiprocessing
import os
import signal
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bert_tf.errors import UserError
from bert_tf.experiments.demo.prose import sentences

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
    """The prose of one documentation string: its English sentences, without markup."""

    library: str
    module: str  # its source file, as `library/folder/file.py`
    sentences: tuple[str, ...]


def harvest(
    folders: Mapping[str, Path] | None = None, on_progress: Callable[[int, int], None] | None = None
) -> list[Passage]:
    """Reads the documentation strings of the libraries, in the order of libraries and file names.

    Repeated documentation strings are left out, also those of another library. Files that cannot be
    parsed are skipped. Every processor reads a part of the files.

    Args:
        folders: library name -> folder of its sources; the installed `LIBRARIES` if not given.

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
    count = max(1, min(len(os.sched_getaffinity(0)), len(files) // _FILES))
    # Forked processes also start from a notebook. This one handles Ctrl-C.
    ignored = signal.SIGINT, signal.SIG_IGN
    with multiprocessing.get_context("fork").Pool(count, signal.signal, ignored) as pool:
        read = pool.imap(_read, [file for *_, file in files], chunksize=20)
        for number, ((library, folder, file), found) in enumerate(zip(files, read, strict=True), 1):
            module = f"{library}/{file.relative_to(folder).as_posix()}"
            for docstring, prose in found:
                if docstring not in seen:
                    seen.add(docstring)
                    if prose:
                        passages.append(Passage(library, module, prose))
            if on_progress:
                on_progress(number, len(files))
    return passages


def _read(file: Path) -> list[tuple[str, tuple[str, ...]]]:
    return [(each, sentences(each)) for each in docstrings(file)]


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
