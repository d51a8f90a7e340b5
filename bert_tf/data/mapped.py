"""Arrays that are made piece by piece, in memory or in a folder from which they are mapped."""

import contextlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.console import logger
from bert_tf.io.atomic import locked, make_folder, write_text
from bert_tf.io.refusals import explained

# The other files in the folder of the arrays.
_INDEX, _LOCK = "index.json", "lock"
# Pieces that are written at a time, and the seconds between two checks of another process's lock.
_PIECES, _WAIT = 16, 0.5

Pieces = Callable[[int], Iterator[Mapping[str, np.ndarray]]]


def joined(pieces: Pieces, folder: Path | None) -> dict[str, np.ndarray]:
    """The pieces of arrays, joined along the first axis, by name.

    `pieces(n)` yields pieces from number n on, with the same names in the same order. Pieces that
    are in `folder` are not made again, even if the process that made them was killed. If several
    processes join at once, one writes and the others wait. Without a folder, all stays in memory.
    """
    if folder is None:
        return _together([*pieces(0)])
    with explained(folder), _alone_in(folder):
        state = _state(folder)
        if not state["finished"]:
            _write(pieces, folder, state)
    return {name: _mapped(folder / name, *form) for name, form in state["arrays"].items()}


def _together(pieces: list[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    names = pieces[0] if pieces else ()
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in names}


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Waits until no other process works in a folder."""
    make_folder(folder)
    (folder / _LOCK).touch()
    for attempt in itertools.count():
        with locked(folder / _LOCK) as is_mine:
            if is_mine is not False:
                yield
                return
        if attempt == 0:
            logger.info(f"{folder}: another process tokenizes the same rows; waiting for it")
        time.sleep(_WAIT)


def _state(folder: Path) -> dict[str, Any]:
    """The state of a folder: the arrays' forms, [dtype, shape], and the number of their pieces."""
    new = {"done": 0, "finished": False, "arrays": {}}
    try:
        state = new | json.loads((folder / _INDEX).read_text(encoding="utf-8"))
        forms = state["arrays"].items()
        if all((folder / name).stat().st_size >= _bytes(*form) for name, form in forms):
            return state
    except (OSError, ValueError, TypeError, AttributeError):
        pass  # there is no index, or it is damaged
    return new


def _write(pieces: Pieces, folder: Path, state: dict[str, Any]) -> None:
    found = pieces(state["done"])
    while not state["finished"]:
        some = [*itertools.islice(found, _PIECES)]
        for name, new in _together(some).items():
            dtype, shape = state["arrays"].get(name, (new.dtype.str, (0, *new.shape[1:])))
            with open(folder / name, "ab") as file:
                file.truncate(_bytes(dtype, shape))
                file.write(np.ascontiguousarray(new).data)
                file.flush()
                os.fsync(file.fileno())
            state["arrays"][name] = [dtype, [shape[0] + len(new), *shape[1:]]]
        state |= {"done": state["done"] + len(some), "finished": len(some) < _PIECES}
        write_text(folder / _INDEX, json.dumps(state))


def _bytes(dtype: str, shape: list[int]) -> int:
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize


def _mapped(path: Path, dtype: str, shape: list[int]) -> np.ndarray:
    if not _bytes(dtype, shape):  # nothing can be mapped
        return np.zeros(shape, dtype)
    return np.asarray(np.memmap(path, dtype, "r", shape=tuple(shape)))
