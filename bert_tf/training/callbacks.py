"""What happens in addition to the updates: checkpoints, evaluation, logs and the console."""

import math
import time
from collections.abc import Callable

import keras

from bert_tf.console import Progress, logger
from bert_tf.training.checkpointing import Checkpoints
from bert_tf.training.evaluations import Evaluations, Metrics, in_words
from bert_tf.training.preemption import Preemption
from bert_tf.training.tensorboard import Scalars


class StepCallback(keras.callbacks.Callback):
    """A callback that knows how many updates the run has done, earlier sessions included.

    Args:
        start: updates done before.
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

    def due(self, every: int) -> bool:
        """Whether something that happens `every` so many steps, and at the end, happens now."""
        return self.step == self.total or self.step % every == 0


class Log(StepCallback):
    """Shows progress on the console and writes metrics for TensorBoard.

    The metrics shown are means since the last line, so they are reset with each; in pre-training
    since the last evaluation, where that came later.

    Args:
        start, total: as for `StepCallback`.
        every: updates between lines.
        tokens: how many tokens the first so many updates have seen, padding left out.
        scalars: the same for TensorBoard.
    """

    def __init__(
        self, start: int, total: int, every: int, tokens: Callable[[int], float], scalars: Scalars
    ):
        super().__init__(start, total)
        self._every = every
        self._tokens = tokens
        self._scalars = scalars
        self._progress: Progress | None = None

    def on_train_begin(self, logs: Metrics | None = None) -> None:
        """Shows the bar with the first of the run's phases."""
        if self._progress is None:
            self._progress = Progress("training", self.total, self.step, "tokens", self._tokens)

    def after_step(self, logs: Metrics) -> None:
        """Moves the bar; every so many steps writes the metrics and begins new means."""
        means = {name: float(value) for name, value in logs.items()}
        line = self.due(self._every)
        if self._progress is not None:
            self._progress.update(self.step, means, line=line)
        if line:
            rate = float(self.model.optimizer.learning_rate)
            self._scalars.write(self.step, means | {"learning_rate": rate})
            self.model.reset_metrics()

    def close(self) -> None:
        """Writes what is still to be shown or written."""
        if self._progress is not None:
            self._progress.close()
        self._scalars.close()


class Evaluate(StepCallback):
    """Evaluates when that is due, and ends the run when nothing better has come for long.

    Args:
        start, total: as for `StepCallback`.
        evaluate: gives dev metrics of the model as it is; None if it was cut short.
        evaluations: where the results go.
        scalars: the same for TensorBoard.
        preemption: what may cut an evaluation short; it is made up for when the run goes on.
    """

    def __init__(
        self,
        start: int,
        total: int,
        evaluate: Callable[[], Metrics | None],
        evaluations: Evaluations,
        scalars: Scalars,
        preemption: Preemption,
    ):
        super().__init__(start, total)
        self._evaluate = evaluate
        self._evaluations = evaluations
        self._scalars = scalars
        self._preemption = preemption

    def after_step(self, logs: Metrics) -> None:
        """Evaluates when due."""
        self.evaluate_if_due()
        if self._evaluations.over:
            self.model.stop_training = True

    def evaluate_if_due(self) -> bool:
        """Evaluates unless that was done, or the process has to end now; whether it did."""
        self._preemption.look()
        if self._preemption.asked or not self._evaluations.due(self.step, self.total):
            return False
        metrics = self._evaluate()
        self._preemption.look()
        if metrics is None:
            return False
        self._evaluations.add(self.step, metrics)
        self._scalars.write(self.step, metrics)
        logger.info(f"step {self.step}: " + in_words(metrics))
        return True


class Save(StepCallback):
    """Saves a checkpoint now and then, at the end, and whenever the run would end with it.

    Args:
        start, total: as for `StepCallback`.
        every: updates between checkpoints.
        minutes: time between checkpoints; None looks at the steps only.
        checkpoints: where they go.
        evaluations: their part of the checkpoint.
        preemption: whether the process has to end, once it has saved.
    """

    def __init__(
        self,
        start: int,
        total: int,
        every: int,
        minutes: float | None,
        checkpoints: Checkpoints,
        evaluations: Evaluations,
        preemption: Preemption,
    ):
        super().__init__(start, total)
        self._every = every
        self._seconds = math.inf if minutes is None else 60 * minutes
        self._saved = time.monotonic()
        self._checkpoints = checkpoints
        self._evaluations = evaluations
        self._preemption = preemption

    def after_step(self, logs: Metrics) -> None:
        """Saves when due."""
        evaluations = self._evaluations
        if (
            self.due(self._every)
            or time.monotonic() - self._saved >= self._seconds
            or evaluations.over
            or evaluations.keep_best
            and evaluations.results
            and evaluations.kept(self.step) == self.step
            or self._preemption.asked
        ):
            self._checkpoints.save(self.model, self.step, evaluations)
            self._saved = time.monotonic()
        self._preemption.end_if_asked(self.step)
