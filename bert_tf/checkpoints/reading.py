"""Finding out what a checkpoint is, and filling a model from it."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np

from bert_tf.checkpoints import huggingface, names, native
from bert_tf.errors import UserError
from bert_tf.models import EncoderConfig

CHECKPOINTS = "checkpoints"  # the folder of checkpoints in a run folder


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """Which weights came from the checkpoint.

    Attributes:
        loaded: our names of the weights that were read.
        new: our names of the weights that keep their random start.
    """

    loaded: tuple[str, ...]
    new: tuple[str, ...]

    def __str__(self) -> str:
        new = f"; newly initialised: {', '.join(self.new)}" if self.new else ""
        return f"{len(self.loaded)} weights loaded{new}"


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on the disk, not yet in memory.

    Attributes:
        folder: where its files are.
        encoder: the encoder's sizes.
        description: what our own format says besides; None for others' formats.
    """

    folder: Path
    encoder: EncoderConfig
    description: native.Description | None

    def fill(self, model: keras.Model) -> LoadReport:
        """Gives `model` every weight that the checkpoint has for it.

        Raises:
            UserError: a file is missing or damaged, a shape does not fit, or there is no weight
                of the encoder at all.
        """
        if self.description is None:
            weights = names.assemble(model, huggingface.read_tensors(self.folder))
        else:
            weights = _fitting(native.read_weights(self.folder), model)
        variables = names.weight_names(model)
        if not any(name.startswith("encoder/") for name in weights):
            raise UserError(f"{self.folder} holds no weight of a BERT encoder")
        for name, value in weights.items():
            variables[name].assign(value)
        new = tuple(name for name in variables if name not in weights)
        return LoadReport(tuple(weights), new)


def find(path: str | Path) -> Checkpoint:
    """Detects the checkpoint at `path`: a run folder, one of our checkpoints, or Hugging Face's.

    Raises:
        UserError: there is nothing at `path`, or nothing that is a checkpoint.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"checkpoint not found: {path}")
    if (path / CHECKPOINTS).is_dir():
        path = newest(path)
    if (path / native.DESCRIPTION_FILE).is_file():
        description = native.read_description(path)
        return Checkpoint(path, description.encoder, description)
    if (path / huggingface.CONFIG_FILE).is_file():
        return Checkpoint(path, huggingface.read_config(path), None)
    raise UserError(
        f"no checkpoint in {path}: expected a run folder, {native.DESCRIPTION_FILE} (bert_tf) "
        f"or {huggingface.CONFIG_FILE} (Hugging Face)"
    )


def newest(run: Path) -> Path:
    """The newest checkpoint of a run folder. Raises UserError when there is none yet."""
    steps = sorted((run / CHECKPOINTS).glob("step-*"))
    if not steps:
        raise UserError(f"{run} has no checkpoint yet; let its training save one first")
    return steps[-1]


def _fitting(weights: Mapping[str, np.ndarray], model: keras.Model) -> dict[str, np.ndarray]:
    """The weights that `model` has too, their shapes checked."""
    fitting = {}
    for name, variable in names.weight_names(model).items():
        if name not in weights:
            continue
        theirs, ours = weights[name].shape, tuple(variable.shape)
        if theirs != ours:
            raise UserError(
                f"weight {name} has shape {list(theirs)} in the checkpoint and {list(ours)} in "
                f"the model; {names.likely_cause(name, theirs, ours)}"
            )
        fitting[name] = weights[name]
    return fitting
