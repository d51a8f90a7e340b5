"""The checkpoints of a run: which there are, which of them counts, and whether it is sound."""

from pathlib import Path

from bert_tf.checkpoints import native
from bert_tf.checkpoints.state import KEPT, STATE_FILE, damage, read_state
from bert_tf.errors import UserError
from bert_tf.progress import warn

# What a run folder has from its start.
RUN_FILE = "config.yaml"

# Where the runs of a search are in it.
_TRIALS = "trials"
# The files of a checkpoint that others than training read.
_READ = (native.DESCRIPTION_FILE, native.WEIGHTS_FILE)


def newest(run: Path) -> Path:
    """The newest checkpoint of a run folder. Raises UserError when there is none yet."""
    steps = _steps(run)
    if not steps:
        raise without_checkpoint(run)
    return steps[-1]


def kept(run: Path) -> Path:
    """The checkpoint whose weights a run ends with: the newest, or the one that this names as best.

    A damaged one is passed over with a warning, as it is when training goes on. One without a state
    is not of a training, and is taken as it is.

    Raises:
        UserError: there is none yet; all are damaged, or the best one is.
    """
    steps = _steps(run)
    for last in reversed(steps):
        if not (last / STATE_FILE).is_file():
            return last
        problem = damage(last, _READ)
        if problem is None:
            return _named_by(last)
        warn(f"checkpoint {last} is damaged ({problem}); using the one before")
    if steps:
        raise UserError(
            f"all checkpoints in {run / native.CHECKPOINTS} are damaged; start a new run"
        )
    raise without_checkpoint(run)


def check(checkpoint: Path) -> None:
    """Raises UserError where a checkpoint is damaged; one without a state does not tell."""
    problem = damage(checkpoint, _READ) if (checkpoint / STATE_FILE).is_file() else None
    if problem is not None:
        raise UserError(f"checkpoint is damaged: {checkpoint} ({problem}); copy it again")


def step_folder(checkpoints: Path, step: int) -> Path:
    """The folder of the checkpoint after `step` updates."""
    return checkpoints / f"step-{step:08d}"


def without_checkpoint(run: Path) -> UserError:
    """Tells that a run has none, and what to do."""
    if (run / _TRIALS).is_dir():
        return UserError(
            f"{run} has no checkpoint yet; finish its search, or name one of the trials under "
            f"{run / _TRIALS}"
        )
    return UserError(f"{run} has no checkpoint yet; let its training save one first")


def _named_by(last: Path) -> Path:
    """The checkpoint that a sound one names as best, or that one itself."""
    step = read_state(last).get(KEPT)
    best = step_folder(last.parent, step) if isinstance(step, int) else last
    problem = None if best == last else damage(best, _READ)
    if problem is not None:
        raise UserError(
            f"the best checkpoint, {best}, is damaged ({problem}); start a new run, or name "
            "another of its checkpoints"
        )
    return best


def _steps(run: Path) -> list[Path]:
    return sorted((run / native.CHECKPOINTS).glob("step-*"))
