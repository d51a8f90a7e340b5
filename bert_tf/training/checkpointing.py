"""Checkpoints of a training run: everything that the next step depends on.

A checkpoint is a folder `step-00001000/` with the model in our format (readable by itself), the
optimizer's variables and the state of the random generators, and a `state.json` with the step, the
evaluations so far, the step whose weights the run would end with (`kept`), and the checksums of the
files and of all that. It appears by one rename. The position in the data is the step: batch k is a
function of the seed and k.
"""

import hashlib
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from bert_tf.checkpoints import names, native, tensors
from bert_tf.checkpoints.checkpoint import listed
from bert_tf.checkpoints.description import Description
from bert_tf.checkpoints.reading import KEPT, STATE_FILE, step_folder
from bert_tf.errors import UserError
from bert_tf.files import atomic_path, remove_folder
from bert_tf.training.evaluations import Evaluations

OPTIMIZER_FILE = "optimizer.safetensors"

# The state's own checksum in it.
_OWN = "checksum"

# What comes of a state that is not what `save` has written.
_UNREADABLE = (ValueError, KeyError, AttributeError, TypeError)


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: where they are.
        description: what the model is, for our format.
        kept: how many stay; older ones are deleted, but not the one that the run would end with.
        writes: whether this process writes them; of several that train together one does.

    Attributes:
        folder: where they are.
    """

    def __init__(self, folder: Path, description: Description, kept: int, writes: bool = True):
        self.folder = folder
        self._writes = writes
        self._description = description
        self._kept = kept

    def save(self, model: keras.Model, step: int, evaluations: Evaluations) -> None:
        """Writes the checkpoint of `step`, the number of updates done; the optimizer is built.

        Raises:
            UserError: the disk is full or the folder cannot be written; older checkpoints stay.
        """
        if not self._writes:
            return
        with atomic_path(step_folder(self.folder, step)) as new:
            new.mkdir()
            native.write(new, model, self._description)
            variables = _training_variables(model)
            tensors.save(
                new / OPTIMIZER_FILE, {name: value.numpy() for name, value in variables.items()}
            )
            state = {
                "step": step,
                KEPT: evaluations.kept(step),
                "evaluations": evaluations.results,
                "sha256": {file.name: _checksum(file) for file in sorted(new.iterdir())},
            }
            state[_OWN] = _checksum_of(state)
            (new / STATE_FILE).write_text(json.dumps(state, indent=2), encoding="utf-8")
        self._delete_others(step)

    def restore(self, model: keras.Model, evaluations: Evaluations) -> int:
        """Puts the newest sound checkpoint into `model` and its optimizer, and into `evaluations`.

        A damaged one is passed over with a warning; the next `save` deletes it.

        Returns:
            The number of updates done; 0 when there is no checkpoint.

        Raises:
            UserError: there are checkpoints and all are damaged, or they are of another model.
        """
        steps = self._steps()
        for folder in reversed(steps):
            problem = _damage(folder)
            if problem is None:
                self._check_description(folder)
                _fill(_training_variables(model), tensors.load(folder / OPTIMIZER_FILE), folder)
                _fill(names.weight_names(model), native.read_weights(folder), folder)
                state = _read_state(folder)
                evaluations.restore(state["evaluations"])
                return state["step"]
            warnings.warn(
                f"checkpoint {folder} is damaged ({problem}); using the one before", stacklevel=2
            )
        if steps:
            raise UserError(f"all checkpoints in {self.folder} are damaged; start a new run")
        return 0

    def load_weights(self, model: keras.Model, step: int) -> None:
        """Puts the weights of the checkpoint of `step` into `model`, for what follows training.

        Raises:
            UserError: the checkpoint is missing or damaged.
        """
        folder = step_folder(self.folder, step)
        problem = _damage(folder)
        if problem is not None:
            raise UserError(
                f"the best checkpoint, {folder}, is damaged ({problem}); start a new run"
            )
        _fill(names.weight_names(model), native.read_weights(folder), folder)

    def _check_description(self, folder: Path) -> None:
        """Raises UserError where the outputs of the model saved there mean something else."""
        found, ours = native.read_description(folder), self._description
        if found.labels != ours.labels:
            raise UserError(
                f"{folder} has the labels {listed(found.labels)}, but the training data "
                f"{listed(ours.labels)}; put the data back as it was, or choose another --out"
            )
        if found != ours:
            raise _of_another_model(folder)

    def _delete_others(self, step: int) -> None:
        """Deletes what is too old, and what is later than `step` since it had to be passed over."""
        steps = self._steps()
        sound = steps[: steps.index(step_folder(self.folder, step)) + 1]
        stay = set(sound[-self._kept :])
        stay |= {self._named_by(folder) for folder in stay}
        for folder in steps:
            if folder not in stay:
                remove_folder(folder)

    def _named_by(self, folder: Path) -> Path:
        """The checkpoint that this one names as kept; itself where it cannot be read."""
        try:
            return step_folder(self.folder, _read_state(folder)[KEPT])
        except (OSError, *_UNREADABLE):
            return folder

    def _steps(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"))


def _training_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """The optimizer's variables and the states of the random generators, by stable names."""
    weights = {id(weight) for weight in model.weights}
    generators = [v for v in model.non_trainable_variables if id(v) not in weights]
    return {f"optimizer/{i}": v for i, v in enumerate(model.optimizer.variables)} | {
        f"random/{i}": v for i, v in enumerate(generators)
    }


def _fill(variables: dict[str, keras.Variable], values: Mapping, folder: Path) -> None:
    if variables.keys() != values.keys():
        raise _of_another_model(folder)
    for name, variable in variables.items():
        variable.assign(values[name])


def _of_another_model(folder: Path) -> UserError:
    return UserError(f"{folder} is a checkpoint of another model; choose another --out")


def _read_state(folder: Path) -> dict[str, Any]:
    return json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))


def _damage(folder: Path) -> str | None:
    """What is wrong with a checkpoint; None when every file has its checksum."""
    try:
        state = _read_state(folder)
        if state.pop(_OWN) != _checksum_of(state):
            return f"{STATE_FILE} has changed"
        for name, checksum in state["sha256"].items():
            if _checksum(folder / name) != checksum:
                return f"{name} has changed"
    except (OSError, *_UNREADABLE) as error:
        return str(error)
    return None


def _checksum_of(state: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()


def _checksum(file: Path) -> str:
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
