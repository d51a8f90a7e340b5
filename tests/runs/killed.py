"""Runs that end in the middle, within the process of a test, and how they compare."""

import numpy as np

from bert_tf.checkpoints import of_run, tensors
from bert_tf.training.checkpointing import Checkpoints


class Killed(BaseException):
    """Stands for the end of the process."""


def weights(run) -> dict[str, np.ndarray]:
    """The newest weights of a run, with those of its optimizer."""
    model, optimizer = (f"{name}.safetensors" for name in ("model", "optimizer"))
    folder = of_run.newest(run)
    return tensors.load(folder / model) | tensors.load(folder / optimizer)


def kill_after(monkeypatch, step: int) -> None:
    """Ends the process, as it were, just after the checkpoint of `step` was written."""
    save = Checkpoints.save

    def save_and_die(self, model, now, evaluations):
        save(self, model, now, evaluations)
        if now == step:
            raise Killed

    monkeypatch.setattr(Checkpoints, "save", save_and_die)


def check_equal(run, undisturbed):
    """Both runs have the same weights and moments, to the bit."""
    found, expected = weights(run), weights(undisturbed)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].tobytes() == value.tobytes(), name


def check_ended_equal(run, undisturbed):
    """Both runs have ended, with the same weights, moments and metrics, and nothing unfinished."""
    check_equal(run, undisturbed)
    assert (run / "metrics.json").read_text() == (undisturbed / "metrics.json").read_text()
    assert not list(run.rglob("*.unfinished"))
