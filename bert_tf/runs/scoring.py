"""`bert-tf evaluate`: what a fine-tuned model predicts, and how good that is."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import batches_by_length, say_cut
from bert_tf.config.arguments import checked_argument
from bert_tf.config.imported import Imported
from bert_tf.config.run import FinetuningRun, RunConfig
from bert_tf.console import logger
from bert_tf.data.batching import TrainingRows
from bert_tf.data.columns import Columns
from bert_tf.encoder.config import POLICIES
from bert_tf.errors import UserError
from bert_tf.io.remote import local_path
from bert_tf.runs.run_folder import RunFolder
from bert_tf.tasks import registry
from bert_tf.tasks.fitting import with_intervals
from bert_tf.tasks.loading import load_model
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_model import TaskModel
from bert_tf.training.callbacks import OthersFailed
from bert_tf.training.evaluations import in_words

_BATCH = 32  # rows that are computed at once


def evaluate(
    path: str | os.PathLike, data: str | os.PathLike | None = None, confidence: float | None = None
) -> dict[str, float]:
    """Scores a fine-tuned run on its dev file, or on the file `data`.

    Writes the predictions and the metrics. Metrics on `data` go to `predictions/NAME_metrics.json`.
    NAME is the file's name without its ending; it begins with `other_` if it could be taken for a
    file of the run. A finished run's metrics on its own dev file go to `metrics.json`.

    With `confidence`, there are intervals of the metrics too; see `TaskModel.evaluate`.

    Raises:
        UserError: `path` is not a finished or interrupted fine-tuning run, or the data is wrong.
    """
    confidence = checked_argument("confidence", confidence)
    run = RunFolder.open(path)
    task, model = trained(run)
    files = {"": local_path(data)} if data else task.files("dev")
    rows = {ending: task.read(path) for ending, path in files.items()}
    name = Path(data).stem if data else "dev"
    own = (*task.files("dev").values(), *task.test_files().values())
    is_own = not data or local_path(data).resolve() in {each.resolve() for each in own}
    if not is_own and task.is_taken(name):
        name = f"other_{name}"
    for each in rows.values():
        if isinstance(each, Columns):
            say_cut(model, each.values)
    metrics = score(task, model, rows, run.predictions, name, confidence)
    if data:
        said = in_words(metrics) or "no labels"
        logger.info(f"{data}: {said}; predictions for {name} are in {run.predictions}")
        if metrics:
            run.write_metrics(metrics, of=name)
    elif (before := run.read_metrics()) is None:
        logger.info(f"{path}, not finished: {in_words(metrics)}")
    else:
        # The metrics of train.metrics, and of the calibration, are not computed again.
        metrics = {**before, **metrics}
        run.finish(metrics)
    return metrics


def trained(run: RunFolder[RunConfig], precision: str | None = None) -> tuple[Task, TaskModel]:
    """The task of a run, and its model as trained so far, by default in the run's precision."""
    config = run.trained_with
    if not isinstance(config, FinetuningRun):
        raise UserError(f"{run.path} is a {config.task} run; its metrics are in metrics.json")
    model = load_model(run.path, dtype=POLICIES[precision or config.train.precision])
    return registry.family(config.task).task_class()(config, model.labels), model


def score(
    task: Task,
    model: TaskModel,
    files: dict[str, Any],
    folder: Path | None = None,
    name: str = "",
    confidence: float | None = None,
) -> dict[str, float]:
    """The metrics of each file, maybe with intervals; a folder gets the predictions too."""
    metrics: dict[str, float] = {}
    for ending, rows in files.items():
        predictions = model.infer(rows)
        if folder is not None:
            task.write_predictions(model, predictions, rows, folder, name + ending)
        scores = with_intervals(task.score, model, predictions, rows, confidence)
        metrics |= {metric + ending: value for metric, value in scores.items()}
    return metrics


def more_metrics(
    named: Sequence[Imported], model: TaskModel, files: Mapping[str, Any]
) -> Callable[[dict[str, float]], dict[str, float]]:
    """A function that adds metrics of other packages on the dev files to those of the task."""
    made = [(each, each.make(keras.metrics.Metric, {})) for each in named]
    encoded = {ending: model.examples(rows) for ending, rows in files.items() if named}
    outputs = tf.function(functools.partial(model, training=False), reduce_retracing=True)

    def value(metric: keras.metrics.Metric, examples: TrainingRows) -> float:
        metric.reset_state()
        for rows in batches_by_length(examples.lengths, _BATCH):
            inputs, targets, *weights = examples.take(rows)
            if isinstance(targets, np.ndarray) and targets.dtype.kind == "i":
                # Tokens without a tag have a negative target.
                weights = [np.multiply(targets >= 0, *weights or [1.0])]
                targets = np.maximum(targets, 0)
            metric.update_state(targets, outputs(inputs), *weights)
        return float(metric.result())

    def added(metrics: dict[str, float]) -> dict[str, float]:
        for ending, examples in encoded.items():
            for each, metric in made:
                name = metric.name + ending
                try:
                    if name in metrics:
                        raise ValueError(f"the task has a metric {name}; give this another name")
                    metrics = metrics | {name: value(metric, examples)}
                except Exception as error:
                    raise OthersFailed(
                        f"{each.place}: {each.name} does not fit the task, with its targets and "
                        f"the outputs of its model ({type(error).__name__}: {error})"
                    ) from error
        return metrics

    return added
