"""What happens when a loss or a gradient is no longer a number."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path
from bert_tf.training.evaluations import Metrics, has_finite_loss

Batches = Callable[[int, int, int], tf.data.Dataset]

_IN_A_ROW = 10  # skipped updates in a row, after which skipping more does not help
_ADVICE = "lower train.learning_rate and start again with another --out"


class Diverged(UserError):
    """The loss is no longer a number. `found` says what and where; a search prints no advice."""

    def __init__(self, found: str, advice: str):
        super().__init__(f"{found}; {advice}")
        self.found = found


def check_dev_loss(metrics: Metrics) -> None:
    """Raises Diverged where the loss on the dev data is not finite at the end of a run."""
    if not has_finite_loss(metrics):
        raise Diverged(f"the loss on the dev data is {metrics['loss']}", _ADVICE)


@dataclasses.dataclass(eq=False)
class NonFinite:
    """Ends training when the loss or the gradient is not finite, and writes the batch to `folder`.
    With `skip`, the optimizer skips such updates, and training goes on, unless there are ten in a
    row. After the last update the weights are checked, as no further loss would show a problem.
    """

    total: int  # updates of the whole run
    folder: Path | None
    skip: bool
    _seen: int | None = None
    _in_a_row: int = 0

    def begin(self, model: keras.Model) -> None:
        self._seen = int(model.optimizer.nonfinite.numpy())
        self._in_a_row = 0

    def check(self, model: keras.Model, step: int, logs: Metrics, batches_from: Batches) -> None:
        """Raises Diverged, with the step and the batch, unless the update was skipped."""
        loss, seen = float(logs["loss"]), int(model.optimizer.nonfinite.numpy())
        if seen == self._seen and math.isfinite(loss):
            self._in_a_row = 0
        else:
            self._seen = seen
            is_loss = not math.isfinite(loss)
            what = f"the loss is {loss}" if is_loss else "the gradient is not finite"
            if not self.skip or self._in_a_row == _IN_A_ROW - 1:
                batch = self._write_batch(step, batches_from)
                other_way = ", or set train.skip_nonfinite to true to skip such updates"
                if self.skip:
                    other_way = f" ({_IN_A_ROW} updates in a row were not finite)"
                raise Diverged(f"{what} at step {step}{batch}", _ADVICE + other_way)
            self._in_a_row += 1
            logger.warning(f"{what} at step {step}; its update is skipped")
            # Otherwise the means would stay infinite or NaN.
            model.reset_metrics()
        weights = model.trainable_variables
        if step == self.total and not all(
            bool(tf.reduce_all(tf.math.is_finite(each.value))) for each in weights
        ):
            raise Diverged(f"the weights are not finite after the last step, {step}", _ADVICE)

    def _write_batch(self, step: int, batches_from: Batches) -> str:
        if self.folder is None:
            return ""
        path = self.folder / f"nonfinite-step-{step:08d}.npz"
        (batch,) = batches_from(step - 1, 0, 1).take(1).as_numpy_iterator()
        arrays: dict[str, Any] = {}
        for name, part in zip(("inputs", "targets", "weights"), batch, strict=False):
            arrays |= part if isinstance(part, dict) else {name: part}
        with atomic_path(path) as new:
            np.savez(new, **arrays)
        return f" (its batch is in {path})"
