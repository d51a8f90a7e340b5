"""Gives damaged files to readers, in a process that has nothing else to lose.

    python -m tests.fuzzing.run INPUTS FOLDER READER...

The input at hand is in FOLDER/at_hand, so that it is still there if the process crashes or hangs.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import contextlib  # noqa: E402
import faulthandler  # noqa: E402
import io  # noqa: E402
import resource  # noqa: E402
import shutil  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from hypothesis import HealthCheck, given, settings  # noqa: E402

from bert_tf.errors import UserError  # noqa: E402
from tests.fuzzing.readers import CACHE, Files, Reader, readers  # noqa: E402

# An input takes milliseconds.
SECONDS = 30
# Of this many inputs, some must be read.
MANY = 1000
# Bytes: how much a reader may allocate at once, and how much the process may grow in all.
# TensorFlow keeps something of each kind of checkpoint that is made for the process.
MOST_AT_ONCE, MOST_GROWTH = 4 << 30, 2 << 30
# Events that no reader may cause (docs.python.org/3/library/audit_events.html).
_FORBIDDEN = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "subprocess.Popen")
_FORBIDDEN += ("socket.connect", "pickle.find_class", "shutil.", "os.remove", "os.rename", "ctypes")
# Events that a reader that unpacks may cause, with its own temporary files.
_DELETING, _MOVING = ("shutil.rmtree", "os.remove"), ("shutil.move", "os.rename")
# Such a reader also opens /proc/meminfo, and a folder below the one that it is deleting.
_UNPACKING = (("/proc/meminfo", "r"), ("assets", None))


def main(inputs: int, scratch: Path, names: list[str]) -> None:
    """Succeeds if every input gave a result or a line, for the named readers or for all."""
    known = readers(scratch)
    folder, temporary = scratch / "at_hand", scratch / "temporary"
    temporary.mkdir(exist_ok=True)
    tempfile.tempdir = str(temporary)
    watch = Watch(folder, temporary)
    for name in names or known:
        put(known[name].good, folder)
        watch.unpacks = known[name].unpacks
        # Proves that the good file is good, and triggers the delayed imports of the reader.
        known[name].read(folder)
        before = in_use("resident")
        # Memory that was mapped for earlier readers, or for TensorFlow, does not count.
        limit = in_use("size") + MOST_AT_ONCE
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        results = ask(known[name], inputs, folder, watch)
        grown = in_use("resident") - before
        told = ", ".join(f"{count} {result}" for result, count in results.items())
        print(f"{name}: {told}, {grown >> 20} MiB more")
        # TensorFlow keeps files of its own there until the process ends, and Python its bytecode.
        left = {each.name for each in temporary.iterdir() if each.is_dir()} - {"__pycache__"}
        assert not left, f"temporary files are left: {left}"
        assert results["refused"], "no input was refused: they are no good"
        assert results["read"] or inputs < MANY, "no input was read: they are no good"
        assert grown < MOST_GROWTH, "memory grows"


def ask(reader: Reader, inputs: int, folder: Path, watch: "Watch") -> dict[str, int]:
    """How many inputs were read and how many refused."""
    results = {"read": 0, "refused": 0}

    @settings(
        max_examples=inputs,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(reader.damaged)
    def each(files: Files) -> None:
        put(files, folder)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        results["read" if accepted(reader, folder, watch) else "refused"] += 1
        faulthandler.cancel_dump_traceback_later()

    each()
    return results


def put(files: Files, folder: Path) -> None:
    """Makes `folder` hold these files alone."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def accepted(reader: Reader, folder: Path, watch: "Watch") -> bool:
    """Whether the files were read; False if they were refused in one line."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            with watch:
                reader.read(folder)
        except UserError as error:
            lines = str(error).splitlines()
            assert len(lines) == 1 and len(lines[0]) < 2010, f"not one line: {error!s:.3000}"
            return False
    return True


class Watch:
    """A context in which nothing is run, and no file is written or opened outside `folder`.

    Args:
        folder: what the reader reads.
        temporary: where a reader that unpacks may write, besides the folder's cache.

    Attributes:
        unpacks: whether this reader unpacks.
    """

    def __init__(self, folder: Path, temporary: Path):
        self._folder = os.path.realpath(folder)
        self._temporary = (f"{os.path.realpath(temporary)}{os.sep}", f"{self._folder}/{CACHE}/")
        self._on = self.unpacks = False
        self._done: list[str] = []
        sys.addaudithook(self._hook)

    def __enter__(self) -> None:
        self._on = True

    def __exit__(self, *exception: Any) -> None:
        self._on = False
        # A reader that catches every exception would have taken this one for damage.
        assert not self._done, self._done

    def _hook(self, event: str, arguments: tuple) -> None:
        if not self._on:
            return
        if self.unpacks and event in _DELETING and self._is_temporary(*arguments[:2]):
            return
        if self.unpacks and event in _MOVING and all(map(self._is_temporary, arguments[:2])):
            return
        if event.startswith(_FORBIDDEN):
            self._refuse(f"a reader did {event} {arguments}")
        if event == "open" and isinstance(arguments[0], str | bytes):
            path, mode = os.path.realpath(os.fsdecode(arguments[0])), arguments[1]
            if self.unpacks and (self._is_temporary(path) or arguments[:2] in _UNPACKING):
                return
            is_inside = f"{path}{os.sep}".startswith(f"{self._folder}{os.sep}")
            # Python's own modules are imported late.
            is_module = path.startswith((sys.prefix, sys.base_prefix)) or path.endswith(".py")
            if not is_inside and not is_module or mode not in (None, "r", "rb"):
                self._refuse(f"a reader opened {path} ({mode})")

    def _is_temporary(self, path: str, folder: int | None = None) -> bool:
        """Whether a path is one of temporary files; below an open folder, whose path was seen."""
        if folder not in (None, -1):
            return True
        return f"{os.path.realpath(os.fsdecode(path))}{os.sep}".startswith(self._temporary)

    def _refuse(self, what: str) -> None:
        self._done.append(what)
        raise AssertionError(what)


def in_use(what: str) -> int:
    """Bytes of this process's memory: "size", all that is mapped, or what is "resident"."""
    pages = Path("/proc/self/statm").read_text().split()
    return int(pages[("size", "resident").index(what)]) * resource.getpagesize()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
