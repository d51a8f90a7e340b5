"""Numbers for TensorBoard."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.training.evaluations import Metrics

_LARGEST = float(np.finfo(np.float32).max)


class Scalars:
    """Curves of a run for TensorBoard, which shows the folder's name. None writes no curves."""

    def __init__(self, folder: Path | None):
        self._folder = folder
        self._writer: tf.summary.SummaryWriter | None = None

    def write(self, step: int, metrics: Metrics) -> None:
        if self._folder is None:
            return
        if self._writer is None:
            self._writer = tf.summary.create_file_writer(str(self._folder))
        with self._writer.as_default(step=step):
            _write_points(metrics)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def write_trial(folder: Path, trial: str, settings: Mapping[str, object], metrics: Metrics) -> None:
    """One row of TensorBoard's table of hyper-parameters, in a folder of its own. TensorBoard finds
    columns and ranges by itself; it reads only one description of a search (`hparams_config`), so
    other searches under the same folder would lose their columns.
    """
    from tensorboard.plugins.hparams import api

    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default(step=0):
        # The table can hold no null.
        plain = {k: v if isinstance(v, bool | int | float) else str(v) for k, v in settings.items()}
        api.hparams(plain, trial_id=trial)
        _write_points(metrics)
    writer.close()


def _write_points(metrics: Metrics) -> None:
    for name, value in metrics.items():
        # TensorFlow refuses numbers beyond float32.
        tf.summary.scalar(name, np.clip(value, -_LARGEST, _LARGEST))
