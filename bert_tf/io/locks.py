"""Locks on files in buckets: objects that name the process that writes there and renews them.

A process of this machine loses its lock as soon as it ends. A process of another machine loses its
lock if it has not renewed it for a minute.
"""

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.remote import lock_of, remote_of
from bert_tf.io.stores import Store

# Seconds between two renewals, seconds without a renewal after which a lock counts as lost, and
# seconds between two readings of another process's lock.
RENEWED, ABANDONED, _LOOKS = 20.0, 60.0, 2.0


class _Lock:
    """A lock that this process holds, and renews in a thread until `release`."""

    def __init__(self, store: Store, key: str, of: Path):
        self._store, self._key, self.of = store, key, of
        self._who = {
            "host": socket.gethostname(),
            "machine": _machine(),
            "process": os.getpid(),
            "started": _started(os.getpid()),
            "id": secrets.token_hex(8),
        }
        self._renewals = 0
        self._take()
        self._at, self._ended = time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises UserError if another process has taken over the lock meanwhile."""
        if time.monotonic() - self._at > ABANDONED / 2 and not self._is_mine():
            raise UserError(
                f"another process has taken over {self.of}, since this one did not renew its lock "
                f"for {ABANDONED:.0f} s; let that one finish"
            )

    def release(self) -> None:
        self._ended.set()
        self._thread.join()
        try:
            if self._is_mine():
                self._store.remove([self._key])
        except UserError as error:
            logger.warning(f"{self.of}: the lock cannot be removed ({error})")

    def _content(self) -> bytes:
        return json.dumps(self._who | {"renewals": self._renewals}).encode()

    def _theirs(self) -> dict[str, Any]:
        found = None
        with contextlib.suppress(FileNotFoundError, ValueError, RecursionError):
            found = json.loads(self._store.read(self._key))
        return found if isinstance(found, dict) else {}

    def _is_mine(self) -> bool:
        return self._theirs().get("id") == self._who["id"]

    def _take(self) -> None:
        seen, since = "", 0.0
        while True:
            found = self._store.info(self._key)
            theirs = {} if found is None else self._theirs()
            is_here = theirs.get("machine") == self._who["machine"]
            is_lost = is_here and _started(theirs.get("process")) != theirs.get("started")
            who = f"process {theirs.get('process')} on {theirs.get('host')}"
            if found is not None and not is_lost:
                if is_here or found.tag != (seen or found.tag):
                    raise UserError(
                        f"another process is writing to {self.of} ({who}); let it finish, or "
                        "choose another place"
                    )
                if not seen:
                    seen, since = found.tag, time.monotonic()
                    logger.info(
                        f"{self.of} is locked by {who}; waiting for {ABANDONED:.0f} s to see "
                        "whether it renews its lock"
                    )
                is_lost = time.monotonic() - since >= ABANDONED
            if found is None or is_lost:
                taken = self._store.write(self._key, self._content(), found and found.tag)
                # In a store without conditional writes, the last of two writers wins.
                if taken and self._is_mine():
                    if found is not None:
                        logger.info(f"{self.of}: taking over the lock of {who}, which is gone")
                    return
            time.sleep(_LOOKS if found else 0.0)

    def _renew(self) -> None:
        while not self._ended.wait(RENEWED):
            self._renewals += 1
            try:
                found = self._store.info(self._key)
                if found is None or not self._is_mine():
                    logger.warning(f"{self.of}: another process has taken over the lock")
                    return
                if self._store.write(self._key, self._content(), found.tag):
                    self._at = time.monotonic()
            except (UserError, OSError) as error:
                logger.warning(f"{self.of}: the lock cannot be renewed ({error})")


_held: list[_Lock] = []


@contextlib.contextmanager
def held(path: Path, is_folder: bool = False) -> Iterator[None]:
    """Holds the lock on a remote `path`, unless this process holds one on a folder around it. The
    lock on a run is in its folder (`is_folder`); the lock on something new is next to it.
    """
    place = path / ".lock" if is_folder else lock_of(path)
    remote = remote_of(place)
    if remote is None or any(path.is_relative_to(each.of) for each in _held):
        yield
        return
    lock = _Lock(*remote, path)
    _held.append(lock)
    try:
        yield
    finally:
        _held.remove(lock)
        lock.release()


def check_held(path: Path) -> None:
    """Raises UserError if another process has taken over what this one writes at `path`."""
    for lock in _held:
        if path.is_relative_to(lock.of):
            lock.check()


def _started(process: Any) -> str:
    """When a process started, in ticks since the machine did; "" if there is no such process."""
    with contextlib.suppress(OSError, TypeError, ValueError):
        text = Path(f"/proc/{process:d}/stat").read_text(encoding="utf-8")
        # The name of the program, in parentheses, may contain blanks.
        return text.rpartition(")")[2].split()[19]
    return ""


def _machine() -> str:
    """A name that differs between machines, their starts, and containers with their own pids."""
    start = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return f"{socket.gethostname()}/{start}/{os.readlink('/proc/self/ns/pid')}"
