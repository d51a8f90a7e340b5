"""The checkpoints of a run: where they are, which one is used, and whether its files are sound.

Each has a `state.json`: how far training was, the step whose weights would be the final ones if the
run ended there (`kept`), and the checksums of the other files and of the state itself.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from bert_tf.checkpoints import native
from bert_tf.checkpoints.tensors import damaged
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.files import checksum, is_there, read_text
from bert_tf.io.remote import fetched

STATE_FILE = "state.json"
KEPT = "kept"
# The errors of reading a state that is missing or is not what `write_state` wrote.
UNREADABLE = (OSError, ValueError, KeyError, AttributeError, TypeError)

# A run folder has the first file from the start and the second at the end. The folder of a search
# has, at the end, the third too: the configuration of its best trial.
RUN_FILE = "config.yaml"
METRICS_FILE = "metrics.json"
BEST_FILE = "best.yaml"

# The folder in a search's folder with the runs that it compares.
_TRIALS = "trials"
_STEP = re.compile(r"step-\d+")
# The files of a checkpoint that are read outside training.
_READ = (native.DESCRIPTION_FILE, native.WEIGHTS_FILE)
# The keys of a state for the checksums of the files and for its own.
_FILES, _OWN = "sha256", "checksum"


def newest(run: Path) -> Path:
    """The newest checkpoint of a run folder. Raises UserError when there is none yet."""
    steps = step_folders(run / native.CHECKPOINTS)
    if not steps:
        raise without_checkpoint(run)
    return steps[-1]


def newest_sound(checkpoints: Path, problem: Callable[[Path], str | None]) -> Path | None:
    """The newest checkpoint without a `problem`, or None; warns of damaged ones."""
    steps = step_folders(checkpoints)
    for folder in reversed(steps):
        found = problem(folder)
        if found is None:
            return folder
        logger.warning(f"checkpoint {folder} is damaged ({found}); using the previous one")
    if steps:
        raise UserError(f"all checkpoints in {checkpoints} are damaged; start a new run")
    return None


def kept(run: Path) -> Path:
    """The checkpoint with a run's final weights: the newest, or the one that it names as best.

    A damaged checkpoint is skipped with a warning, as it is when training resumes.
    """
    last = newest_sound(run / native.CHECKPOINTS, _problem)
    if last is None:
        raise without_checkpoint(run)
    # A checkpoint without a state does not come from training, and is used as it is.
    step = read_state(last).get(KEPT) if is_there(last / STATE_FILE) else None
    best = step_folder(last.parent, step) if isinstance(step, int) else last
    if best != last and (problem := damage(best, _READ)) is not None:
        raise UserError(
            f"the best checkpoint, {best}, is damaged ({problem}); start a new run, or name "
            "another checkpoint of the run"
        )
    return fetched(best)


def run_of(checkpoint: Path) -> Path | None:
    """The run folder that `checkpoint` belongs to; None if it belongs to no run."""
    above = checkpoint.absolute().parent
    is_ours = above.name == native.CHECKPOINTS and (checkpoint / native.DESCRIPTION_FILE).is_file()
    return above.parent if is_ours and (above.parent / RUN_FILE).is_file() else None


def check(checkpoint: Path) -> None:
    """Raises UserError if a checkpoint is damaged. A checkpoint without a state is not checked."""
    problem = _problem(checkpoint)
    if problem is not None:
        raise damaged(checkpoint, problem)


def step_folders(checkpoints: Path) -> list[Path]:
    """The folders of all checkpoints, the oldest first."""
    # Copies that a user keeps there under other names are not the run's checkpoints.
    return sorted(folder for folder in checkpoints.glob("step-*") if _STEP.fullmatch(folder.name))


def step_folder(checkpoints: Path, step: int) -> Path:
    """The folder of the checkpoint after `step` updates."""
    return checkpoints / f"step-{step:08d}"


def without_checkpoint(run: Path) -> UserError:
    """The error for a run without a checkpoint; it says what to do."""
    if (run / _TRIALS).is_dir():
        return UserError(
            f"{run} has no checkpoint yet; finish its search, or name one of the trials under "
            f"{run / _TRIALS}"
        )
    if (run / METRICS_FILE).is_file():
        return UserError(
            f"{run} no longer has a checkpoint; restore it, or train again with the same command"
        )
    return UserError(f"{run} has no checkpoint yet; wait until training has saved one")


def write_state(checkpoint: Path, fields: dict[str, Any]) -> None:
    """Writes `fields` into the folder `checkpoint`, with the checksums of the files in it."""
    files = {file.name: checksum(file) for file in sorted(checkpoint.iterdir())}
    state = fields | {_FILES: files}
    state[_OWN] = _checksum_of(state)
    (checkpoint / STATE_FILE).write_text(json.dumps(state, indent=2), encoding="utf-8")


def read_state(checkpoint: Path) -> dict[str, Any]:
    """The fields that `write_state` wrote. Raises one of `UNREADABLE` if they cannot be read."""
    return json.loads(read_text(checkpoint / STATE_FILE))


def damage(checkpoint: Path, files: Collection[str] | None = None) -> str | None:
    """The damage to a checkpoint, in words; None if the `files` (None for all) are sound."""
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


def _problem(checkpoint: Path) -> str | None:
    """The damage to the files in `_READ`; None if they are sound or there is no state."""
    return damage(checkpoint, _READ) if is_there(checkpoint / STATE_FILE) else None


def _checksum_of(state: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()
