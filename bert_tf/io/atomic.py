"""Writing files that must survive a crash.

Every file of a run is written under a temporary name in the same folder, flushed to the disk and
then renamed, so that a reader sees either the old content or the new one, never half of it.
"""

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from bert_tf.errors import UserError
from bert_tf.io import locks, remote
from bert_tf.io.refusals import cannot_write, explained

# A folder in which NAME is being written is called .NAME.xxxxxxxx.unfinished; what it replaces is
# moved there as NAME.old.
_UNFINISHED = ".unfinished"
_SCRATCH = re.compile(rf"\.(.+)\.[a-z0-9_]{{8}}{re.escape(_UNFINISHED)}")
_OLD = ".old"
_DEVICES = Path("/dev")


@contextlib.contextmanager
def atomic_path(
    path: str | os.PathLike, is_file: bool = False, is_new: bool = False
) -> Iterator[Path]:
    """Yields a temporary path (a file or a folder to create) that becomes `path` on success.

    On an exception the temporary is removed and `path` is left as it was. A file, or a folder that
    is new, appears in one move. A folder that replaces another takes two. Remote files are stored
    before that, see `bert_tf.io.remote`. Unfinished files of killed processes in the folder of
    `path` are removed first.

    A file (`is_file`) never replaces a folder. If `is_new`, nothing may be replaced: of two
    processes that write at once, one fails.
    """
    path = remote.local_path(path)
    if path.name in ("", ".."):
        raise UserError(f"cannot replace {path} itself; name a file or folder inside it")
    with explained(path), contextlib.nullcontext() if is_file else locks.held(path):
        if is_stream(path):
            raise UserError(f"cannot write {path}: it is a device or a pipe; name a file or folder")
        if is_file and path.is_dir():
            raise UserError(f"cannot write {path}: it is a folder; name a file")
        make_folder(path.parent)
        is_being_written = clear_unfinished(path.parent, path.name)
        if is_new and remote.exists(path):
            raise _taken(path)
        if is_new and is_being_written:
            raise UserError(
                f"another process is writing {path}; wait until it ends, or choose another place"
            )
        with _scratch_of_mine(path) as scratch, explained(path):  # before the scratch is removed
            new = scratch / path.name
            yield new
            for each in [new, *new.rglob("*")] if new.is_dir() else [new]:
                _flush(each)
            locks.check_held(path)
            with remote.published(new, path):
                if is_new:
                    _move(new, path)
                elif path.is_dir() and new.is_dir():
                    os.rename(path, _aside(scratch, path))
                    os.rename(new, path)
                else:
                    os.replace(new, path)
            with contextlib.suppress(PermissionError):  # the folder may be write-only
                _flush(path.parent)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yields a folder for temporary files. Raises UserError if its disk is full or read-only."""
    with explained(), tempfile.TemporaryDirectory() as folder, explained():  # before it is removed
        yield Path(folder)


def is_stream(path: str | os.PathLike) -> bool:
    """Whether there is a device or a pipe at `path`, or a link to one, such as /dev/stdout."""
    is_plain = os.path.isfile(path) or os.path.isdir(path)
    return os.path.exists(path) and (Path(path).absolute().parent == _DEVICES or not is_plain)


def remove_folder(path: str | os.PathLike) -> None:
    """Removes a folder with all that is in it; it is never seen half-removed."""
    path = Path(path)
    remote.remove(path)
    scratch = _scratch(path)
    os.rename(path, scratch / path.name)
    shutil.rmtree(scratch)


def clear_unfinished(folder: str | os.PathLike, name: str | None = None) -> bool:
    """Removes unfinished files of killed processes from `folder`, and restores half-replaced
    folders. Files of living processes stay; returns whether one of these is writing `name`.
    """
    is_being_written = False
    for scratch in Path(folder).glob(f".*{_UNFINISHED}"):
        named = _SCRATCH.fullmatch(scratch.name)
        if named is None:
            continue
        # Its process may just have removed it, or it may belong to another user.
        with contextlib.suppress(FileNotFoundError, PermissionError), locked(scratch) as held:
            is_being_written |= held is False and named[1] == name
            if held:
                _discard(scratch, scratch.with_name(named[1]))
    return is_being_written


@contextlib.contextmanager
def locked(path: str | os.PathLike) -> Iterator[bool | None]:
    """Holds a lock on a file or a folder. It ends with the process, however the process ends.

    Yields True if this process holds the lock, False if another does, and None on a file system
    without locks. On a network file system only a lock on a file that is opened for writing, as
    here, also holds for other machines (flock(2), "NFS details").
    """
    handle = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR)
    held: bool | None = True
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = False
        except OSError:
            held = None
        yield held
    finally:
        os.close(handle)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Writes `text` to `path` as UTF-8, atomically."""
    with text_file(path) as file:
        file.write(text)


@contextlib.contextmanager
def text_file(path: str | os.PathLike) -> Iterator[TextIO]:
    """A UTF-8 file that appears at `path` at the end; obstacles are noticed at the start."""
    with (
        atomic_path(path, is_file=True) as new,
        open(new, "w", encoding="utf-8", newline="\n") as file,
    ):
        yield file


def make_folder(path: str | os.PathLike) -> None:
    """Makes the folder `path` and those above it, where they are missing."""
    with explained(path):
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
        except FileNotFoundError as error:  # raised in /proc, which takes no folders
            raise cannot_write(path, error) from error


def _move(new: Path, path: Path) -> None:
    """Moves a file or a folder to `path`, where nothing may exist."""
    move = os.rename if new.is_dir() else os.link  # both fail if there is something in the way
    try:
        move(new, path)
    except OSError as error:
        if os.path.lexists(path):
            raise _taken(path) from error
        os.replace(new, path)  # file systems without links


def _taken(path: Path) -> UserError:
    return UserError(f"{path} exists already; remove it or choose another place")


def _scratch(path: Path) -> Path:
    """A new temporary folder for the file or folder that will be at `path`."""
    try:
        return Path(tempfile.mkdtemp(_UNFINISHED, f".{path.name}.", path.parent))
    except FileNotFoundError as error:  # raised in /proc, which takes no folders
        raise cannot_write(path, error) from error


@contextlib.contextmanager
def _scratch_of_mine(path: Path) -> Iterator[Path]:
    """A locked `_scratch`, which is removed at the end."""
    with contextlib.ExitStack() as stack:
        is_mine = False
        while not is_mine:  # before it is locked, another process may remove it as left behind
            scratch = _scratch(path)
            with contextlib.suppress(FileNotFoundError):
                is_mine = stack.enter_context(locked(scratch)) is not False and scratch.exists()
        stack.callback(_discard, scratch, path)
        yield scratch


def _discard(scratch: Path, path: Path) -> None:
    """Removes a temporary folder; puts back what it was to replace, if nothing has replaced it."""
    old = _aside(scratch, path)
    if old.is_dir() and not path.exists():
        os.rename(old, path)
    shutil.rmtree(scratch, ignore_errors=True)


def _aside(scratch: Path, path: Path) -> Path:
    """Where a folder at `path` waits while another takes its place."""
    return scratch / f"{path.name}{_OLD}"


def _flush(path: Path) -> None:
    """Forces a file onto the disk, or a folder's list of names, so that a rename is not lost."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
