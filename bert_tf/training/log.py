"""Progress of a training on the console, and its metrics for TensorBoard."""

import dataclasses
from collections.abc import Callable

import keras

from bert_tf.console import Progress
from bert_tf.training.evaluations import Metrics
from bert_tf.training.tensorboard import Scalars


@dataclasses.dataclass(eq=False)
class Log:
    """Shows progress on the console and writes metrics for TensorBoard.

    The metrics are means since the last line; in pre-training, an evaluation also starts new means.

    Attributes:
        start: updates that earlier sessions have done.
        total: updates of the whole run.
        every: updates between lines.
        tokens: gives the number of tokens in the first updates, however many, without padding.
        scalars: TensorBoard's curves.
    """

    start: int
    total: int
    every: int
    tokens: Callable[[int], float]
    scalars: Scalars
    _progress: Progress | None = None

    def begin(self) -> None:
        """Shows the bar, when the first phase begins."""
        if self._progress is None:
            self._progress = Progress("training", self.total, self.start, "tokens", self.tokens)

    def add(self, model: keras.Model, step: int, logs: Metrics) -> None:
        """Moves the bar; when a line is due, writes the metrics and begins new means."""
        means = {name: float(value) for name, value in logs.items()}
        line = step == self.total or step % self.every == 0
        if self._progress is not None:
            self._progress.update(step, means, line=line)
        if line:
            rate = float(model.optimizer.learning_rate)
            self.scalars.write(step, means | {"learning_rate": rate})
            model.reset_metrics()

    def close(self) -> None:
        """Writes what is still to be shown or written."""
        if self._progress is not None:
            self._progress.close()
        self.scalars.close()
