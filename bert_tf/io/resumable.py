"""Writing a large file piece by piece, so that the work can continue if the process is killed."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.atomic import is_stream, locked, make_folder, write_text
from bert_tf.io.refusals import explained
from bert_tf.io.remote import local_path, published


class Unfinished:
    """A file that is being written; `resumable_file` opens it."""

    def __init__(self, handle: BinaryIO, state: Path, work: dict[str, Any]):
        self._handle, self._state, self._work = handle, state, work
        self.done, size = self._progress()
        handle.truncate(size)
        handle.seek(size)

    def append(self, piece: bytes, done: int) -> None:
        """Writes the next piece onto the disk, and notes how much of the work is `done`."""
        self._handle.write(piece)
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self.done = done
        state = {"work": self._work, "done": done, "bytes": self._handle.tell()}
        # A file with ".unfinished" in its name is not stored in a bucket.
        write_text(new := f"{self._state}.unfinished", json.dumps(state, indent=2) + "\n")
        os.replace(new, self._state)

    def _progress(self) -> tuple[int, int]:
        """How much of the same work is done, and the bytes written for it; zeros for other work."""
        if not self._state.exists():
            return 0, 0
        try:
            state = json.loads(self._state.read_text(encoding="utf-8"))
            work, done, size = (state[name] for name in ("work", "done", "bytes"))
        except (ValueError, KeyError, TypeError, RecursionError):
            work, done, size = None, None, None
        written = os.fstat(self._handle.fileno()).st_size
        is_whole = type(done) is int and type(size) is int and 0 <= size <= written and done >= 0
        if work == self._work and is_whole:
            return done, size
        logger.info(
            f"{self._state} belongs to other work or is damaged; starting from the beginning"
        )
        return 0, 0


@contextlib.contextmanager
def resumable_file(path: str | os.PathLike, work: Mapping[str, Any]) -> Iterator[Unfinished]:
    """Yields a file to which pieces are appended; it becomes `path` at the end.

    Until then it is `path` with ".part" at its end, on this machine, with a `.part.json` that says
    how much of the work is done. If the block fails or the process is killed, both files stay. The
    next call with the same `work`, which is all that decides what is written, finds in `done` how
    much of it is done, and appends the rest; other work starts from the beginning. `path` is left
    as it was until it is replaced in one move.
    """
    path = local_path(path)
    part, state = (path.with_name(f"{path.name}.part{ending}") for ending in ("", ".json"))
    with explained(path):
        if is_stream(path) or path.is_dir():
            raise UserError(f"cannot write {path}: it is not a regular file; name a file")
        make_folder(path.parent)
        part.touch()
        with locked(part) as is_mine:
            if is_mine is False:
                raise UserError(
                    f"another process is writing {path}; wait until it ends, or name another file"
                )
            with open(part, "r+b") as handle:
                file = Unfinished(handle, state, dict(work))
                try:
                    yield file
                except BaseException:
                    if not file.done:
                        part.unlink()
                        state.unlink(missing_ok=True)
                    raise
            with published(part, path):
                os.replace(part, path)
            state.unlink(missing_ok=True)
