"""Files in buckets, gs:// and s3://, by way of copies on the local disk.

All code reads and writes local files. `local_path` gives the place of the copy of an address, and
leaves other paths as they are; it reads no store. `fetched` brings a copy up to date before it is
read, and `published` stores what was written. The copies are a cache: `BERT_TF_CACHE` names its
folder (default: ~/.cache/bert_tf), `BERT_TF_CACHE_GB` its size (default: 50). Copies that were used
longest ago are removed first, and none that a living process has used.

A store has no folders and renames nothing. The files without which a reader does not recognize a
folder are stored last and removed first, so that nobody takes half a folder for a whole one.
"""

import contextlib
import dataclasses
import fcntl
import glob
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

from bert_tf.console import logger
from bert_tf.errors import ADDRESSES, UserError
from bert_tf.io.stores import ENDPOINTS, Found, Store, store_of

_ADDRESS = re.compile(r"(gs|s3):/+(.*)", re.DOTALL)
# The files that a reader recognizes a folder by.
_MARKERS = re.compile(
    r"((adapter_|bert_)?config|bert_tf|modules|manifest)\.json|saved_model\.pb|.*\.index"
)
# The bytes of the pieces in which files are fetched, and how many pieces and files at a time.
_PIECE, _AT_ONCE = 2**23, 4
_LARGE = 2**27  # downloads of more bytes are printed
_BELIEVED = 3.0  # seconds for which an answer of a store counts as current
# How often a folder is read again if it changes while it is read.
_TRIES = 5
_GIGABYTES = 50.0

_asked: dict[Path, float] = {}  # when a store was last read for a place
# The file in which a process, or one that it was forked from, notes the copies that it uses.
_users: dict[tuple[int, Path], TextIO] = {}


def is_remote(path: str | os.PathLike) -> bool:
    """Whether `path` is the address of something in a bucket."""
    return _ADDRESS.fullmatch(os.fspath(path)) is not None


def local_path(path: str | os.PathLike) -> Path:
    """The path of the local copy of an address, even if it is missing; other paths as they are."""
    match = _ADDRESS.fullmatch(os.fspath(path))
    if match is None:
        return Path(path)
    scheme, key = match[1], match[2].removesuffix("/")
    if any(part in ("", ".", "..") for part in key.split("/")) or "\0" in key:
        raise UserError(f"{path} is not an address such as {scheme}://bucket/folder/file")
    # Emulators and other stores may have buckets of the same name.
    variables = (f"{ENDPOINTS[scheme]}_S3", ENDPOINTS[scheme])
    endpoint = next((os.environ[name] for name in variables if os.environ.get(name)), "")
    place = _cache() / (scheme + (f"-{_short(endpoint)}" if endpoint else ""))
    ADDRESSES[f"{place}/"] = f"{scheme}://"
    return place / key


def fetched(path: str | os.PathLike, without: str | None = None, is_file: bool = False) -> Path:
    """The local copy of an address, brought up to date; other paths as they are.

    The path is that of a file, a folder, or a glob of files. If nothing is at the address, there is
    no local copy either. The files in folders named `without` are fetched when they are read; until
    then only the folders are there. With `is_file` only a file is fetched; of a folder only the
    folder itself is made.
    """
    place = local_path(path)
    remote = remote_of(place)
    if remote is None or _is_believed(place):
        return place
    store, key = remote
    is_whole = not without
    root, found = Path(os.fspath(place).removesuffix(key)), store.info(key)
    if found is not None and found.tag:
        one = lambda: {} if (now := store.info(key)) is None else {key: now}  # noqa: E731
        _fetch_all(one, store, root, listed={key: found})
    elif found is None and glob.has_magic(key):
        _fetch_all(lambda: _visible(store.glob(key), ""), store, root)
    elif is_file:
        is_whole = found is None
        _drop(place) if is_whole else place.mkdir(parents=True, exist_ok=True)
    else:
        _fetch_all(lambda: _visible(store.find(key), key), store, root, place, without)
    if is_whole:
        _asked[place] = time.monotonic()
    return place


def is_file(path: str | os.PathLike) -> bool:
    """Whether there is a file at a path or an address; it is fetched."""
    return fetched(path, is_file=True).is_file()


def exists(path: str | os.PathLike) -> bool:
    """Whether there is something at a path or an address."""
    place = local_path(path)
    remote = remote_of(place)
    if remote is None:
        return os.path.lexists(place)
    store, key = remote
    found = store.info(key)
    if found is None or found.tag or any(map(_is_marker, store.find(key))):
        return found is not None
    # Incomplete files that a killed process has left next to its lock do not count.
    return store.info(lock_of(Path(key)).as_posix()) is None


def names_in(path: Path, pattern: str) -> list[Path]:
    """What `path.glob(pattern)` finds, or would find if all of a remote folder were here."""
    remote = remote_of(path)
    if remote is None:
        return list(path.glob(pattern))
    store, key = remote
    return [path / name[len(key) + 1 :] for name in store.glob(f"{glob.escape(key)}/{pattern}")]


def lock_of(place: Path) -> Path:
    """The lock on something that is written at a place."""
    return place.with_name(f".{place.name}.lock")


@contextlib.contextmanager
def published(new: Path, path: Path) -> Iterator[None]:
    """Stores the file or folder `new` as the remote `path`; the block then makes it the local copy.
    What cannot be stored is kept in a local folder, which the UserError names.
    """
    remote = remote_of(path)
    if remote is None:
        yield
        return
    store, key = remote
    kept = _cache() / "unsent" / path.relative_to(_cache())
    try:
        found = _put(store, key, new)
    except UserError as error:
        kept.parent.mkdir(parents=True, exist_ok=True)
        _remove_local(kept)
        os.rename(new, kept)
        raise UserError(f"{error}; what was to be stored is kept in {kept}") from error
    _remove_local(path)
    yield
    _remove_local(kept)
    for name, each in found.items():
        os.utime(path / name, (each.changed, each.changed))
        _Note.of(path / name).write(path / name, each)


def remove(path: Path) -> None:
    """Removes a remote file or folder from its store; local ones stay."""
    remote = remote_of(path)
    if remote is None:
        return
    store, key = remote
    names = list(store.find(key)) or [key]
    store.remove(sorted(names, key=_is_marker, reverse=True))


def clear_unstored(folder: Path, prefix: str) -> None:
    """Removes incomplete folders of killed processes, with names like this, from a remote one."""
    remote = remote_of(folder)
    if remote is not None:
        store, key = remote
        names = [name for name in store.find(key) if name.startswith(f"{key}/{prefix}")]
        whole = {name.rpartition("/")[0] for name in names if _is_marker(name)}
        store.remove(name for name in names if name.rpartition("/")[0] not in whole)


def synchronize(folder: Path) -> None:
    """Stores the files of a remote folder that `atomic_path` did not write, such as logs."""
    remote = remote_of(folder)
    if remote is None:
        return
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not _is_hidden(name) and not _Note.of(path).is_of(path):
            before = path.stat()
            found = remote[0].put(path, f"{remote[1]}/{name}")
            if found is not None:
                _Note.of(path).write(path, found, before)


def remote_of(place: Path) -> tuple[Store, str] | None:
    """The store, and the name of the object of which `place` is the copy; None for a local path."""
    text = os.fspath(place)
    for start, address in ADDRESSES.items():
        # Unfinished files belong to this process alone.
        if text.startswith(start) and ".unfinished" not in text:
            return store_of(address[:2]), text.removeprefix(start)
    return None


def _is_believed(place: Path) -> bool:
    """Whether a store has just been read for a place, or for a folder that it is in."""
    now = time.monotonic()
    return any(now - _asked.get(each, -_BELIEVED) < _BELIEVED for each in (place, *place.parents))


def _fetch_all(
    find: Callable[[], dict[str, Found]],
    store: Store,
    root: Path,
    folder: Path | None = None,
    without: str | None = None,
    listed: dict[str, Found] | None = None,
) -> None:
    """Fetches what `find` lists below `root`, until it lists the same before and after. If it lists
    all of `folder`, other copies there are removed.
    """
    listed = find() if listed is None else listed
    for _ in range(_TRIES):
        lazy = {n: each for n, each in listed.items() if without and f"/{without}/" in n}
        wanted = {n: each for n, each in listed.items() if n not in lazy}
        if folder is not None:
            _drop_others(folder, [root / name for name in listed])
        whole = {name.rpartition("/")[0] for name in lazy if _is_marker(name)}
        for name, each in lazy.items():
            if name.rpartition("/")[0] in whole:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
            _drop(root / name, unless=each)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            work = [pool.submit(_fetch, store, n, root / n, f) for n, f in wanted.items()]
            is_changed = any([each.result() for each in work])
        before, listed = listed, find() if is_changed else listed
        if listed == before:
            return
    raise UserError(f"{folder or root} changed while being read; wait until it is written")


def _fetch(store: Store, key: str, place: Path, found: Found) -> bool:
    """Brings the copy of one object up to date; returns whether it was out of date."""
    note = _Note.of(place)
    if found.size > _LARGE and note.read().get("tag") != found.tag:
        logger.info(f"{place}: fetching {found.size / 1e9:.1f} GB")
    with note.locked():
        known = note.read()
        if place.is_file() and known.get("tag") == found.tag:
            # Content that this machine has added since, as to a log, is newer.
            os.utime(note.path)
            return False
        part = _cache() / "parts" / note.path.name
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(part, "wb") as file, ThreadPoolExecutor(_AT_ONCE) as pool:
                file.truncate(found.size)

                def get(start: int) -> None:
                    piece = store.read(key, start, min(start + _PIECE, found.size))
                    if len(piece) != min(_PIECE, found.size - start):
                        raise FileNotFoundError
                    os.pwrite(file.fileno(), piece, start)

                list(pool.map(get, range(0, found.size, _PIECE)))
            if found.size > _PIECE and store.info(key) != found:
                raise FileNotFoundError
        except FileNotFoundError:  # it has changed, so the folder is listed again
            part.unlink(missing_ok=True)
            return True
        os.utime(part, (found.changed, found.changed))
        if place.is_dir() and not any(each.is_file() for each in place.rglob("*")):
            shutil.rmtree(place)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            os.replace(part, place)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise UserError(
                f"{place} cannot have a local copy, since there is both an object and a folder of "
                "that name; rename one"
            ) from None
        note.write(place, found)
    _evict()
    return True


def _put(store: Store, key: str, new: Path) -> dict[str, Found]:
    """Stores a file, or a folder in place of what was there; returns what is there now."""
    if not new.is_dir():
        if store.find(key):
            raise UserError(f"cannot write {store.scheme}://{key}: it is a folder; name a file")
        found = store.put(new, key)
        return {"": found} if found else {}
    files = {f"{key}/{each.relative_to(new).as_posix()}": each for each in new.rglob("*")}
    files = {name: each for name, each in files.items() if each.is_file()}
    old = store.find(key)
    store.remove(filter(_is_marker, old))
    store.remove(name for name in old if name not in files and not _is_marker(name))
    stored: dict[str, Found | None] = {}
    for is_last in (False, True):
        part = [name for name in files if _is_marker(name) == is_last]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            now = pool.map(lambda name: store.put(files[name], name), part)
            stored |= dict(zip(part, now, strict=True))
    return {name[len(key) + 1 :]: each for name, each in stored.items() if each}


def _is_marker(name: str) -> bool:
    return _MARKERS.fullmatch(name.rpartition("/")[2]) is not None


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _visible(found: dict[str, Found], key: str) -> dict[str, Found]:
    return {name: each for name, each in found.items() if not _is_hidden(name[len(key) + 1 :])}


def _drop(place: Path, unless: Found | None = None) -> None:
    """Removes the copy of an object that is gone, or that differs from `unless`."""
    note = _Note.of(place)
    known = note.read()
    if known and (unless is None or known["tag"] != unless.tag) and note.is_of(place):
        place.unlink(missing_ok=True)
        note.path.unlink(missing_ok=True)


def _drop_others(folder: Path, places: Collection[Path]) -> None:
    """Removes copies in a folder whose objects are gone, and then the empty folders."""
    there = {*places, *(above for each in places for above in each.parents)}
    for path in sorted(folder.rglob("*"), reverse=True):
        if path in there or _is_hidden(path.relative_to(folder).as_posix()):
            continue
        if path.is_dir():
            with contextlib.suppress(OSError):
                path.rmdir()
        else:
            _drop(path)


def _remove_local(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        path.unlink()


@dataclasses.dataclass(frozen=True)
class _Note:
    """What was known of a copy when it was written; the note's own time is the copy's last use."""

    path: Path

    @staticmethod
    def of(place: Path) -> "_Note":
        return _Note(_cache() / "notes" / _short(os.fspath(place), 40))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Waits for other processes that work on the copy; this one then uses it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            _use(self.path.name)
            yield
        finally:
            os.close(handle)

    def read(self) -> dict[str, Any]:
        try:
            return json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    def is_of(self, place: Path) -> bool:
        """Whether the copy is as it was written."""
        known = self.read()
        with contextlib.suppress(OSError):
            now = place.stat()
            return (known.get("size"), known.get("time")) == (now.st_size, now.st_mtime_ns)
        return False

    def write(self, place: Path, found: Found, stat: os.stat_result | None = None) -> None:
        now = stat or place.stat()
        known = {"tag": found.tag, "size": now.st_size, "time": now.st_mtime_ns}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _use(self.path.name)
        # In place: another process may wait for the lock on this very file.
        self.path.write_text(json.dumps(known | {"place": os.fspath(place)}), encoding="utf-8")


def _use(name: str) -> None:
    """Notes that this process uses a copy. The lock on the list ends with the process."""
    folder = _cache() / "users"
    owner = (os.getpid(), folder)
    if owner not in _users:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / f"{os.getpid()}-{time.time_ns()}", "w")  # noqa: SIM115
        fcntl.flock(file, fcntl.LOCK_EX)
        _users[owner] = file
    _users[owner].write(f"{name}\n")
    _users[owner].flush()


def _in_use() -> set[str]:
    """The notes of the copies that living processes use."""
    found: set[str] = set()
    for path in (_cache() / "users").glob("*"):
        with contextlib.suppress(OSError), open(path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            except BlockingIOError:
                found.update(file.read().split())
    return found


def _evict() -> None:
    """Removes the least recently used copies until all copies fit into the size of the cache."""
    given = os.environ.get("BERT_TF_CACHE_GB", str(_GIGABYTES))
    try:
        limit = float(given) * 1e9
    except ValueError:
        raise UserError(f"BERT_TF_CACHE_GB is {given!r}; set it to a number") from None
    notes = [_Note(path) for path in (_cache() / "notes").iterdir()]
    known = {note: each for note in notes if (each := note.read())}
    total = sum(each["size"] for each in known.values())
    if total <= limit:
        return
    used = _in_use()
    for note in sorted(known, key=lambda note: note.path.stat().st_mtime):
        place = Path(known[note]["place"])
        if total <= limit:
            return
        if note.path.name not in used and (note.is_of(place) or not place.exists()):
            place.unlink(missing_ok=True)
            note.path.unlink(missing_ok=True)
            total -= known[note]["size"]


def cache_folder() -> Path:
    """The folder of files that can be made again: BERT_TF_CACHE, or by default ~/.cache/bert_tf."""
    own = os.environ.get("BERT_TF_CACHE")
    of_user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(own) if own else Path(of_user) / "bert_tf"


def _cache() -> Path:
    """The folder of all copies."""
    return Path(os.path.realpath(cache_folder()), "remote")


def _short(text: str, length: int = 8) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
