"""Checkpoints of a training run: everything that the next step depends on.

A checkpoint is a folder `step-00001000/` with the model in our format (readable by itself), the
optimizer's variables and the state of the random generators, and a `state.json` (see
`bert_tf.checkpoints.of_run`) with the step, the evaluations so far, and what identifies the
run's data. A checkpoint appears by one rename. The position in the data is the step: batch k is a
function of the seed and k.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from bert_tf.checkpoints import names, native, tensors
from bert_tf.checkpoints.checkpoint import listed
from bert_tf.checkpoints.description import Description
from bert_tf.checkpoints.of_run import (
    KEPT,
    UNREADABLE,
    damage,
    newest_sound,
    read_state,
    step_folder,
    step_folders,
    write_state,
)
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path, remove_folder
from bert_tf.training.evaluations import Evaluations

OPTIMIZER_FILE = "optimizer.safetensors"

# What the state calls the fingerprints of the data, and what they are of.
TRAINING_DATA, DEV_DATA, TEACHER = "data", "dev_data", "teacher"
_IN_WORDS = {
    TRAINING_DATA: "training data",
    DEV_DATA: "dev data",
    TEACHER: "weights of the teacher",
}


class Checkpoints:
    """The checkpoints of one run.

    Those after each `every` updates are in turn. One that is saved out of turn, on SIGTERM or after
    some minutes, makes room for them once it is not the newest any more: in the end a run that was
    stopped has left the same ones as a run that was not.

    Args:
        folder: where they are.
        description: what the model is, for our format.
        kept: how many stay: the newest, then those in turn, and then others, later ones first. The
            rest is deleted, but not the one that the run would end with.
        every: updates between those in turn.
        writes: whether this process writes them; of several that train together one does.
        data: fingerprints by `TRAINING_DATA`, `DEV_DATA` and `TEACHER`; what is not there is not
            compared.

    Attributes:
        folder: where they are.
    """

    def __init__(
        self,
        folder: Path,
        description: Description,
        kept: int,
        every: int,
        writes: bool = True,
        data: Mapping[str, str] | None = None,
    ):
        self.folder = folder
        self._writes = writes
        self._description = description
        self._kept = kept
        self._every = every
        self._data = dict(data or {})

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
            }
            write_state(new, state | self._data)
        self._delete_others(step)

    def restore(self, model: keras.Model, evaluations: Evaluations) -> int:
        """Puts the newest sound checkpoint into `model` and its optimizer, and into `evaluations`.

        A damaged one is passed over with a warning; the next `save` deletes it.

        Returns:
            The number of updates done; 0 when there is no checkpoint.

        Raises:
            UserError: there are checkpoints and all are damaged, or they are of another model or
                of other data.
        """
        folder = newest_sound(self.folder, damage)
        if folder is None:
            return 0
        self._check_description(folder)
        state = read_state(folder)
        self._check_data(state)
        _fill(_training_variables(model), tensors.load(folder / OPTIMIZER_FILE), folder)
        _fill(names.weight_names(model), tensors.load(folder / native.WEIGHTS_FILE), folder)
        evaluations.restore(state["evaluations"])
        return state["step"]

    def load_weights(self, model: keras.Model, step: int) -> None:
        """Puts the weights of the checkpoint of `step` into `model`, for what follows training.

        Raises:
            UserError: the checkpoint is missing or damaged.
        """
        folder = step_folder(self.folder, step)
        problem = damage(folder)
        if problem is not None:
            raise UserError(
                f"the best checkpoint, {folder}, is damaged ({problem}); start a new run"
            )
        _fill(names.weight_names(model), tensors.load(folder / native.WEIGHTS_FILE), folder)

    def _check_description(self, folder: Path) -> None:
        """Raises UserError where the outputs of the model saved there mean something else."""
        found, ours = native.read_description(folder), self._description
        if found.labels != ours.labels:
            raise UserError(
                f"{folder} has the labels {listed(found.labels)}, but the training data has "
                f"{listed(ours.labels)}; restore the data, or choose another --out"
            )
        if found != ours:
            raise _of_another_model(folder)

    def _check_data(self, state: dict[str, Any]) -> None:
        """Raises UserError if the state is of other data; older states do not record their data."""
        for key, found in self._data.items():
            if state.get(key, found) != found:
                raise UserError(
                    f"the {_IN_WORDS[key]} differ from those at step {state['step']}; restore "
                    "them, or choose another --out"
                )

    def _delete_others(self, step: int) -> None:
        """Deletes what is too old, and what is later than `step` since it had to be passed over."""
        steps = step_folders(self.folder)
        newest = step_folder(self.folder, step)
        sound = steps[: steps.index(newest) + 1]
        # Sorting leaves those out of turn in their order, before the others in theirs.
        ranked = sorted(sound, key=lambda folder: folder == newest or self._in_turn(folder))
        stay = set(ranked[-self._kept :])
        stay |= {self._named_by(folder) for folder in stay}
        for folder in steps:
            if folder not in stay:
                remove_folder(folder)

    def _in_turn(self, folder: Path) -> bool:
        number = folder.name.removeprefix("step-")
        return number.isdecimal() and int(number) % self._every == 0

    def _named_by(self, folder: Path) -> Path:
        """The checkpoint that this one names as kept; itself where it cannot be read."""
        try:
            return step_folder(self.folder, read_state(folder)[KEPT])
        except UNREADABLE:
            return folder


def _training_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """What training alone uses, by stable names: variables of the optimizer and of a teacher's
    losses, and the states of the random generators.
    """
    weights = {id(weight) for weight in model.weights}
    generators = [v for v in model.non_trainable_variables if id(v) not in weights]
    teaching = getattr(model, "teaching", None)
    projections = {f"teaching/{each.name}": each for each in teaching.weights} if teaching else {}
    named = names.weight_names(model) | projections
    state = model.optimizer.state({id(variable): name for name, variable in named.items()})
    return {
        **{f"optimizer/{name}": variable for name, variable in state.items()},
        **{f"random/{i}": v for i, v in enumerate(generators)},
        **projections,
    }


def _fill(variables: dict[str, keras.Variable], values: Mapping, folder: Path) -> None:
    if variables.keys() != values.keys():
        raise _of_another_model(folder)
    for name, variable in variables.items():
        variable.assign(values[name])


def _of_another_model(folder: Path) -> UserError:
    return UserError(f"{folder} is a checkpoint of another model; choose another --out")
