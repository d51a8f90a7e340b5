"""Checkpoints of a training run: everything that the next step depends on.

A checkpoint is a folder `step-00001000/` with the model in our format, the optimizer's variables,
the state of the random generators, and a `state.json` (see `bert_tf.checkpoints.of_run`). One
rename makes it appear. The position in the data is the step: batch k depends on the seed and k.
"""

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path

import keras

from bert_tf.checkpoints import names, native, of_run, tensors
from bert_tf.checkpoints.checkpoint import listed
from bert_tf.checkpoints.description import Description
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path, remove_folder
from bert_tf.io.remote import fetched, synchronize
from bert_tf.training.adapter import merged
from bert_tf.training.evaluations import Evaluations

OPTIMIZER_FILE = "optimizer.safetensors"
# An adapter's weights, and the kernels without its updates; the model's own file has them merged.
ADAPTER_FILE = "adapter.safetensors"

# The names of the data's fingerprints in the state, and in messages.
TRAINING_DATA, DEV_DATA, TEACHER = "data", "dev_data", "teacher"
_IN_WORDS = {
    TRAINING_DATA: "training data",
    DEV_DATA: "dev data",
    TEACHER: "weights of the teacher",
}


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one run. Of these, `kept` stay: the newest, then the latest regular ones,
    then others. The one that the run would end with stays too. Those that were saved on SIGTERM or
    after some minutes are deleted first, so a resumed run ends with the same checkpoints.
    """

    folder: Path
    description: Description
    kept: int
    every: int  # updates between regular ones
    writes: bool = True  # of several processes that train together, one writes
    # Fingerprints by TRAINING_DATA, DEV_DATA and TEACHER; those that are missing are not compared.
    data: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def save(self, model: keras.Model, step: int, evaluations: Evaluations) -> None:
        if not self.writes:
            return
        with atomic_path(of_run.step_folder(self.folder, step)) as new:
            new.mkdir()
            with merged(model):
                native.write(new, model, self.description)
            files = {OPTIMIZER_FILE: _training_variables(model)}
            if model.adapter is not None:
                files[ADAPTER_FILE] = model.adapter.exact
            for file, variables in files.items():
                tensors.save(new / file, {name: each.numpy() for name, each in variables.items()})
            state = {
                "step": step,
                of_run.KEPT: evaluations.kept(step),
                "evaluations": evaluations.results,
                "stopped": evaluations.stopped,
            }
            of_run.write_state(new, state | dict(self.data))
        self._delete_others(step)
        synchronize(self.folder.parent)

    def restore(self, model: keras.Model, evaluations: Evaluations) -> int:
        """Puts the newest sound checkpoint into `model`, its optimizer and `evaluations`; returns
        the number of updates done. A damaged one is skipped; the next `save` deletes it.
        """
        folder = of_run.newest_sound(self.folder, of_run.damage)
        if folder is None:
            return 0
        found, ours = native.read_description(folder), self.description
        if found.labels != ours.labels:
            raise UserError(
                f"{folder} has the labels {listed(found.labels)}, but the training data has "
                f"{listed(ours.labels)}; restore the data, or choose another --out"
            )
        if found != ours:
            raise _of_another_model(folder)
        state = of_run.read_state(folder)
        for key, fingerprint in self.data.items():
            # Older states do not record their data.
            if state.get(key, fingerprint) != fingerprint:
                raise UserError(
                    f"the {_IN_WORDS[key]} differ from those at step {state['step']}; restore "
                    "them, or choose another --out"
                )
        _fill(_training_variables(model), tensors.load(folder / OPTIMIZER_FILE), folder)
        _fill_weights(model, folder)
        evaluations.results = [(step, metrics) for step, metrics in state["evaluations"]]
        evaluations.stopped = state.get("stopped", False)
        return state["step"]

    def load_weights(self, model: keras.Model, step: int) -> None:
        folder = fetched(of_run.step_folder(self.folder, step))
        problem = of_run.damage(folder)
        if problem is not None:
            raise UserError(
                f"the best checkpoint, {folder}, is damaged ({problem}); start a new run"
            )
        _fill_weights(model, folder)

    def _delete_others(self, step: int) -> None:
        """Deletes old checkpoints, and those after `step`, which `restore` has skipped."""
        steps = of_run.step_folders(self.folder)
        newest = of_run.step_folder(self.folder, step)
        sound = steps[: steps.index(newest) + 1]
        # Sorting is stable: regular ones come last, and later ones after earlier ones.
        ranked = sorted(sound, key=lambda folder: folder == newest or self._is_regular(folder))
        stay = set(ranked[-self.kept :])
        for folder in ranked[-self.kept :]:
            with contextlib.suppress(*of_run.UNREADABLE):
                stay.add(of_run.step_folder(self.folder, of_run.read_state(folder)[of_run.KEPT]))
        for folder in steps:
            if folder not in stay:
                remove_folder(folder)

    def _is_regular(self, folder: Path) -> bool:
        number = folder.name.removeprefix("step-")
        return number.isdecimal() and int(number) % self.every == 0


def _training_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """The variables that only training uses, by stable names: those of the optimizer and of a
    teacher's losses, and the states of the random generators.
    """
    weights = {id(weight) for weight in model.weights}
    generators = [v for v in model.non_trainable_variables if id(v) not in weights]
    generators += [] if model.adapter is None else model.adapter.generators
    teaching = getattr(model, "teaching", None)
    projections = {f"teaching/{each.name}": each for each in teaching.weights} if teaching else {}
    named = names.weight_names(model) | projections
    state = model.optimizer.state({id(variable): name for name, variable in named.items()})
    return {
        **{f"optimizer/{name}": variable for name, variable in state.items()},
        **{f"random/{i}": v for i, v in enumerate(generators)},
        **projections,
    }


def _fill_weights(model: keras.Model, folder: Path) -> None:
    weights = tensors.load(folder / native.WEIGHTS_FILE)
    if model.adapter is not None:
        weights |= tensors.load(folder / ADAPTER_FILE)
    _fill(names.weight_names(model), weights, folder)


def _fill(variables: dict[str, keras.Variable], values: Mapping, folder: Path) -> None:
    if variables.keys() != values.keys():
        raise _of_another_model(folder)
    for name, variable in variables.items():
        variable.assign(values[name])


def _of_another_model(folder: Path) -> UserError:
    return UserError(f"{folder} is a checkpoint of another model; choose another --out")
