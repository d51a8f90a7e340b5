"""`state.json` in the checkpoints of a run: how far training was, and whether the files are sound.

Besides what training notes for itself it holds the step whose weights the run would end with
(`kept`), and the checksums of the files and of all that.
"""

import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from bert_tf.io.files import checksum

STATE_FILE = "state.json"
KEPT = "kept"

# The checksums of the files, and the state's own.
_FILES, _OWN = "sha256", "checksum"

# What comes of a state that is not what `write_state` has written, or is not there.
UNREADABLE = (OSError, ValueError, KeyError, AttributeError, TypeError)


def write_state(checkpoint: Path, fields: dict[str, Any]) -> None:
    """Writes `fields` into the folder `checkpoint`, with the checksums of the files in it."""
    files = {file.name: checksum(file) for file in sorted(checkpoint.iterdir())}
    state = fields | {_FILES: files}
    state[_OWN] = _checksum_of(state)
    (checkpoint / STATE_FILE).write_text(json.dumps(state, indent=2), encoding="utf-8")


def read_state(checkpoint: Path) -> dict[str, Any]:
    """What `write_state` wrote. Raises one of `UNREADABLE` where that is not there."""
    return json.loads((checkpoint / STATE_FILE).read_text(encoding="utf-8"))


def damage(checkpoint: Path, files: Collection[str] | None = None) -> str | None:
    """What is wrong with a checkpoint, in words; None when all have their checksums.

    Args:
        checkpoint: its folder.
        files: the names of those to look at, besides the state; None looks at all.
    """
    try:
        state = read_state(checkpoint)
        if state.pop(_OWN) != _checksum_of(state):
            return f"{STATE_FILE} has changed"
        for name in state[_FILES] if files is None else files:
            if checksum(checkpoint / name) != state[_FILES][name]:
                return f"{name} has changed"
    except UNREADABLE as error:
        return str(error)
    return None


def _checksum_of(state: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()
