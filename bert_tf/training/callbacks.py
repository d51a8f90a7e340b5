"""Keras callbacks of other packages, in the loop of a run."""

import dataclasses
import math
from collections.abc import Sequence

import keras

from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.training.evaluations import Evaluations, Metrics

Named = Sequence[tuple[str, keras.callbacks.Callback]]
# Evaluation on dev data does not use Keras's loop over batches.
_NOT_CALLED = ("on_test_batch_begin", "on_test_batch_end")


class OthersFailed(UserError):
    """A callback or a metric of another package has failed. The message says what is saved."""

    def __init__(self, found: str, saved: str = ""):
        super().__init__(f"{found}{saved}; correct it or remove it, and start the command again")
        self.found = found


@dataclasses.dataclass(eq=False)
class Callbacks:
    """Calls callbacks as Keras's `fit` does. An epoch lasts from one evaluation to the next, and
    `on_train_begin` begins a session of a run. `on_train_end` comes before the last checkpoint,
    which contains its changes to the weights. `on_epoch_end` gets the dev metrics as `val_…`.
    """

    made: Named
    total: int
    evaluations: Evaluations
    _begun: int = 0
    _logs: dict[str, float] = dataclasses.field(default_factory=dict)

    def begin(self, model: keras.Model, step: int) -> None:
        for name, callback in self.made:
            if isinstance(callback, keras.callbacks.BackupAndRestore):
                raise UserError(f"{name} is not for runs, which resume by themselves; remove it")
            for method in _NOT_CALLED:
                if getattr(type(callback), method) is not getattr(keras.callbacks.Callback, method):
                    logger.warning(f"{name} has {method}, which runs do not call")
        if self.made and step:
            logger.info("callbacks start anew; checkpoints do not contain their state")
        every = self.evaluations.every
        params = {"verbose": 0, "steps": every, "epochs": math.ceil(self.total / every)}
        self.call("set_params", params)
        self.call("set_model", model)
        self.call("on_train_begin", {})
        self._begun = step
        self.call("on_epoch_begin", self._epoch, {})

    def batch_begin(self, step: int) -> None:
        self.call("on_train_batch_begin", step - self._begun, {})

    def batch_end(self, model: keras.Model, step: int, logs: dict[str, float]) -> None:
        self._logs = logs
        self.call("on_train_batch_end", step - self._begun - 1, logs)
        self.evaluations.stopped |= bool(self.made and model.stop_training)

    def epoch_end(self, model: keras.Model, step: int, metrics: Metrics) -> None:
        """Ends an evaluation and the epoch, and begins the next one unless it was the last."""
        self.call("on_test_end", dict(metrics))
        logs = self._logs | {f"val_{name}": value for name, value in metrics.items()}
        self.call("on_epoch_end", self._epoch - 1, logs)
        self.evaluations.stopped |= bool(self.made and model.stop_training)
        self._begun = step
        if step < self.total and not self.evaluations.over:
            self.call("on_epoch_begin", self._epoch, {})
        else:
            self.call("on_train_end", logs)

    def call(self, method: str, *arguments: object) -> None:
        for name, callback in self.made:
            try:
                getattr(callback, method)(*arguments)
            except UserError:
                raise
            except Exception as error:
                raise OthersFailed(
                    f"the callback {name} failed in {method} ({type(error).__name__}: {error})"
                ) from error

    @property
    def _epoch(self) -> int:
        """The number of evaluations so far, except for one before the first update."""
        return sum(step > 0 for step, _ in self.evaluations.results)
