"""What happens beside the updates: checkpoints, evaluation, logs and the console."""

from collections.abc import Callable, Mapping
from pathlib import Path

import keras
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.progress import Progress
from bert_tf.training.checkpointing import Checkpoints

Metrics = Mapping[str, float]


class StepCallback(keras.callbacks.Callback):
    """A callback that knows how many updates the run has done, earlier sittings included.

    Args:
        start: updates done before this call of `fit`.
        total: updates of the whole run.
    """

    def __init__(self, start: int, total: int):
        super().__init__()
        self.step = start
        self.total = total

    def on_train_batch_end(self, batch: int, logs: Metrics | None = None) -> None:
        """Counts, and hands over to `after_step`."""
        self.step += 1
        self.after_step(logs or {})

    def after_step(self, logs: Metrics) -> None:
        """Called after every update with Keras's metrics so far."""
        raise NotImplementedError

    def due(self, every: int | None) -> bool:
        """Whether something that happens `every` so many steps, and at the end, happens now."""
        return self.step == self.total or bool(every) and self.step % every == 0


class Stop(StepCallback):
    """Ends training with an error when the loss is no longer a number."""

    def after_step(self, logs: Metrics) -> None:
        """Raises UserError on a loss that is not finite."""
        loss = float(logs.get("loss", 0.0))
        if loss != loss or loss in (float("inf"), float("-inf")):
            raise UserError(
                f"the loss is {loss} at step {self.step}; lower train.learning_rate and start "
                "again, the run goes on from its last checkpoint"
            )


class Log(StepCallback):
    """Shows progress on the console and writes metrics for TensorBoard.

    The metrics shown are means since the last line, so they are reset with each.
    """

    def __init__(self, start: int, total: int, every: int, batch_size: int, logs: Path):
        super().__init__(start, total)
        self._every = every
        self._writer = tf.summary.create_file_writer(str(logs / "train"))
        self._progress = Progress("training", total, start, unit="sequences", scale=batch_size)

    def after_step(self, logs: Metrics) -> None:
        """Moves the bar; every so many steps writes the metrics and begins new means."""
        means = {name: float(value) for name, value in logs.items()}
        line = self.due(self._every)
        self._progress.update(self.step, means, line=line)
        if line:
            with self._writer.as_default(step=self.step):
                for name, value in means.items():
                    tf.summary.scalar(name, value)
                tf.summary.scalar("learning_rate", self.model.optimizer.learning_rate)
            self.model.reset_metrics()

    def on_train_end(self, logs: Metrics | None = None) -> None:
        """Flushes what is still to be shown or written."""
        self._progress.close()
        self._writer.close()


class Evaluate(StepCallback):
    """Evaluates every so many steps and at the end; the last result is `metrics`."""

    def __init__(
        self,
        start: int,
        total: int,
        every: int | None,
        evaluate: Callable[[], Metrics],
        logs: Path,
        say: Callable[[str], None],
    ):
        super().__init__(start, total)
        self._every = every
        self._evaluate = evaluate
        self._writer = tf.summary.create_file_writer(str(logs / "dev"))
        self._say = say

    def after_step(self, logs: Metrics) -> None:
        """Evaluates when due."""
        if not self.due(self._every) or self.step == self.total:
            return  # the result at the end is the run's own, see `fit.train`
        metrics = self._evaluate()
        self._say(f"step {self.step}: " + describe(metrics))
        with self._writer.as_default(step=self.step):
            for name, value in metrics.items():
                tf.summary.scalar(name, value)


class Save(StepCallback):
    """Saves a checkpoint every so many steps and at the end."""

    def __init__(self, start: int, total: int, every: int, checkpoints: Checkpoints):
        super().__init__(start, total)
        self._every = every
        self._checkpoints = checkpoints

    def after_step(self, logs: Metrics) -> None:
        """Saves when due."""
        if self.due(self._every):
            self._checkpoints.save(self.model, self.step)


def describe(metrics: Metrics) -> str:
    """Metrics as one line of text."""
    return "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())
