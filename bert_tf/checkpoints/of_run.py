"""The checkpoints of a run: which there are, which of them counts, and whether it is sound."""

import re
from collections.abc import Callable
from pathlib import Path

from bert_tf.checkpoints import native
from bert_tf.checkpoints.state import KEPT, STATE_FILE, damage, read_state
from bert_tf.console import logger
from bert_tf.errors import UserError

# What a run folder has from its start.
RUN_FILE = "config.yaml"
# And at its end; of a search also the configuration of its best trial.
METRICS_FILE = "metrics.json"
BEST_FILE = "best.yaml"

# Where the runs of a search are in it.
_TRIALS = "trials"
_STEP = re.compile(r"step-\d+")
# The files of a checkpoint that others than training read.
_READ = (native.DESCRIPTION_FILE, native.WEIGHTS_FILE)


def newest(run: Path) -> Path:
    """The newest checkpoint of a run folder. Raises UserError when there is none yet."""
    steps = step_folders(run / native.CHECKPOINTS)
    if not steps:
        raise without_checkpoint(run)
    return steps[-1]


def newest_sound(checkpoints: Path, problem: Callable[[Path], str | None]) -> Path | None:
    """The newest checkpoint that has no problem; logs a warning for each one that it skips.

    Args:
        checkpoints: the folder of the checkpoints.
        problem: says in words what is wrong with a checkpoint; None if nothing is.

    Returns:
        The folder of that checkpoint; None if there are no checkpoints.

    Raises:
        UserError: there are checkpoints, and all of them have a problem.
    """
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

    A damaged checkpoint is skipped with a warning, as it is when training resumes. A checkpoint
    without a state does not come from training and is used as it is.

    Raises:
        UserError: there is no checkpoint yet, all of them are damaged, or the best one is.
    """
    last = newest_sound(run / native.CHECKPOINTS, _problem)
    if last is None:
        raise without_checkpoint(run)
    return _named_by(last) if _has_state(last) else last


def run_of(checkpoint: Path) -> Path | None:
    """The run folder that `checkpoint` belongs to; None if it belongs to no run."""
    above = checkpoint.absolute().parent
    is_ours = above.name == native.CHECKPOINTS and (checkpoint / native.DESCRIPTION_FILE).is_file()
    return above.parent if is_ours and (above.parent / RUN_FILE).is_file() else None


def check(checkpoint: Path) -> None:
    """Raises UserError if a checkpoint is damaged. A checkpoint without a state is not checked."""
    problem = _problem(checkpoint)
    if problem is not None:
        raise UserError(f"checkpoint is damaged: {checkpoint} ({problem}); copy it again")


def step_folders(checkpoints: Path) -> list[Path]:
    """The folders of all checkpoints, the oldest first."""
    # A copy that somebody keeps there under another name is not one of the run's checkpoints.
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


def _named_by(last: Path) -> Path:
    """The checkpoint that a sound one names as best, or that one itself."""
    step = read_state(last).get(KEPT)
    best = step_folder(last.parent, step) if isinstance(step, int) else last
    problem = None if best == last else damage(best, _READ)
    if problem is not None:
        raise UserError(
            f"the best checkpoint, {best}, is damaged ({problem}); start a new run, or name "
            "another checkpoint of the run"
        )
    return best


def _problem(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint for its readers; None if nothing is or it has no state."""
    return damage(checkpoint, _READ) if _has_state(checkpoint) else None


def _has_state(checkpoint: Path) -> bool:
    return (checkpoint / STATE_FILE).is_file()
