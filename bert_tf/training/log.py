"""Progress of a training on the console, and its metrics for TensorBoard."""

from collections.abc import Callable

import keras

from bert_tf.console import Progress
from bert_tf.training.evaluations import Metrics
from bert_tf.training.tensorboard import Scalars


class Log:
    """Shows progress on the console and writes metrics for TensorBoard.

    The metrics shown are means since the last line, so they are reset with each; in pre-training
    since the last evaluation, where that came later.

    Args:
        start: updates that earlier sessions have done.
        total: updates of the whole run.
        every: updates between lines.
        tokens: how many tokens the first so many updates have seen, padding left out.
        scalars: the same for TensorBoard.
    """

    def __init__(
        self, start: int, total: int, every: int, tokens: Callable[[int], float], scalars: Scalars
    ):
        self._start = start
        self._total = total
        self._every = every
        self._tokens = tokens
        self._scalars = scalars
        self._progress: Progress | None = None

    def begin(self) -> None:
        """Shows the bar, when the first phase begins."""
        if self._progress is None:
            self._progress = Progress("training", self._total, self._start, "tokens", self._tokens)

    def add(self, model: keras.Model, step: int, logs: Metrics) -> None:
        """Moves the bar; every so many steps writes the metrics and begins new means.

        Args:
            model: is trained.
            step: updates done.
            logs: Keras's metrics so far.
        """
        means = {name: float(value) for name, value in logs.items()}
        line = step == self._total or step % self._every == 0
        if self._progress is not None:
            self._progress.update(step, means, line=line)
        if line:
            rate = float(model.optimizer.learning_rate)
            self._scalars.write(step, means | {"learning_rate": rate})
            model.reset_metrics()

    def close(self) -> None:
        """Writes what is still to be shown or written."""
        if self._progress is not None:
            self._progress.close()
        self._scalars.close()
