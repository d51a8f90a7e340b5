"""Checkpoints of a training run: everything that the next step depends on.

A checkpoint is a folder `step-00001000/` with the model in our format (readable by itself), the
optimizer's variables and the state of the random generators, and a `state.json` with the step and
the checksums of the files. It appears by one rename. The position in the data is the step: batch k
is a function of the seed and k.
"""

import hashlib
import json
import shutil
import warnings
from pathlib import Path

import keras

from bert_tf.checkpoints import names, native, tensors
from bert_tf.checkpoints.description import Description
from bert_tf.errors import UserError
from bert_tf.files import atomic_path

STATE_FILE = "state.json"
OPTIMIZER_FILE = "optimizer.safetensors"


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: where they are.
        description: what the model is, for our format.
        kept: how many stay; older ones are deleted.
    """

    def __init__(self, folder: Path, description: Description, kept: int):
        self._folder = folder
        self._description = description
        self._kept = kept

    def save(self, model: keras.Model, step: int) -> None:
        """Writes the checkpoint of `step`, the number of updates done.

        Raises:
            UserError: the disk is full or the folder cannot be written; older checkpoints stay.
        """
        with atomic_path(self._folder / f"step-{step:08d}") as new:
            new.mkdir()
            native.write(new, model, self._description)
            variables = _training_variables(model)
            tensors.save(
                new / OPTIMIZER_FILE, {name: value.numpy() for name, value in variables.items()}
            )
            checksums = {file.name: _checksum(file) for file in sorted(new.iterdir())}
            state = {"step": step, "sha256": checksums}
            (new / STATE_FILE).write_text(json.dumps(state, indent=2), encoding="utf-8")
        for old in self._steps()[: -self._kept]:
            shutil.rmtree(old)

    def restore(self, model: keras.Model) -> int:
        """Puts the newest sound checkpoint into the compiled `model`.

        A damaged one is passed over with a warning.

        Returns:
            The number of updates done; 0 when there is no checkpoint.

        Raises:
            UserError: there are checkpoints and all are damaged.
        """
        steps = self._steps()
        for folder in reversed(steps):
            problem = _damage(folder)
            if problem is None:
                return _load(folder, model)
            warnings.warn(
                f"checkpoint {folder} is damaged ({problem}); using the one before", stacklevel=2
            )
        if steps:
            raise UserError(f"all checkpoints in {self._folder} are damaged; start a new run")
        return 0

    def _steps(self) -> list[Path]:
        return sorted(self._folder.glob("step-*"))


def _training_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """The optimizer's variables and the states of the random generators, by stable names."""
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    weights = {id(weight) for weight in model.weights}
    generators = [v for v in model.non_trainable_variables if id(v) not in weights]
    return {f"optimizer/{i}": v for i, v in enumerate(model.optimizer.variables)} | {
        f"random/{i}": v for i, v in enumerate(generators)
    }


def _load(folder: Path, model: keras.Model) -> int:
    weights = native.read_weights(folder)
    state = tensors.load(folder / OPTIMIZER_FILE)
    for wanted, found in (
        (names.weight_names(model), weights),
        (_training_variables(model), state),
    ):
        if wanted.keys() != found.keys():
            raise UserError(f"{folder} is a checkpoint of another model; choose another --out")
        for name, variable in wanted.items():
            variable.assign(found[name])
    return int(json.loads((folder / STATE_FILE).read_text())["step"])


def _damage(folder: Path) -> str | None:
    """What is wrong with a checkpoint; None when every file has its checksum."""
    try:
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        for name, checksum in state["sha256"].items():
            if _checksum(folder / name) != checksum:
                return f"{name} has changed"
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        return str(error)
    return None


def _checksum(file: Path) -> str:
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
