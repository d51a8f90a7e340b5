"""`bert-tf finetune` and `bert-tf evaluate`: a pre-trained encoder for one task."""

import os
from pathlib import Path
from typing import Any

import keras

from bert_tf.checkpoints import reading
from bert_tf.checkpoints.description import describe
from bert_tf.config import RunConfig
from bert_tf.data.batching import Examples, training_batches
from bert_tf.errors import UserError
from bert_tf.progress import say
from bert_tf.tasks import TASKS, Task
from bert_tf.training import setup
from bert_tf.training.callbacks import describe as describe_metrics
from bert_tf.training.checkpointing import Checkpoints
from bert_tf.training.fit import report, train
from bert_tf.training.run_folder import RunFolder
from bert_tf.training.search import search


def finetune(config: RunConfig, out: str | os.PathLike) -> dict[str, float]:
    """Fine-tunes as `config` says, in the run folder `out`; resumes what was interrupted.

    Lists under `train` are searched: see `search`.

    Returns:
        The metrics on the dev file, as in `metrics.json`.

    Raises:
        UserError: whatever the user can mend, in configuration, data or folder.
    """
    if config.search:
        return search(config, out, _finetune, TASKS[config.task].best_metric)
    return _finetune(config, out)


def _finetune(config: RunConfig, out: str | os.PathLike) -> dict[str, float]:
    run = RunFolder.start(out, config)
    config = run.config
    keras.utils.set_random_seed(config.train.seed)
    tokenizer = setup.make_tokenizer(run)
    task = TASKS[config.task](config, tokenizer)
    examples = task.train_examples()
    per_epoch = _steps_per_epoch(task, examples)
    steps = config.train.steps or round(config.train.epochs * per_epoch)
    dev = {ending: task.read(path) for ending, path in task.files("dev").items()}
    model = task.model(setup.make_encoder(config, tokenizer))
    setup.load_initial_weights(config, model)
    task.compile(
        model,
        optimizer=setup.make_optimizer(config.train, steps),
        accumulation_steps=config.train.accumulation_steps,
    )
    description = describe(model, tokenizer, task.labels)
    checkpoints = Checkpoints(run.checkpoints, description, config.train.checkpoints_kept)
    train(
        run,
        model,
        checkpoints,
        lambda start: training_batches(examples, config.train.batch_size, config.train.seed, start),
        steps,
        config.train.eval_steps or per_epoch,
        lambda: _score(task, model, dev),
    )
    metrics = _score(task, model, dev, run.predictions, "dev")
    report(run, metrics)
    return metrics


def _steps_per_epoch(task: Task, examples: Examples) -> int:
    """Full batches in one pass over the training data."""
    rows, batch_size = len(examples.lengths), task.config.train.batch_size
    if batch_size > rows:
        (path,) = task.files("train").values()
        raise UserError(
            f"train.batch_size {batch_size} is larger than the data: {path} has {rows} rows"
        )
    return rows // batch_size


def _score(
    task: Task,
    model: keras.Model,
    files: dict[str, Any],
    folder: Path | None = None,
    name: str = "",
) -> dict[str, float]:
    """The metrics of the data of each file; with a folder, predictions are written there too."""
    metrics = {}
    for ending, data in files.items():
        predictions = task.predict(model, data)
        if folder is not None:
            task.write_predictions(predictions, data, folder, name + ending)
        scores = task.score(predictions, data)
        metrics |= {metric + ending: value for metric, value in scores.items()}
    return metrics


def evaluate(path: str | os.PathLike, data: str | os.PathLike | None = None) -> dict[str, float]:
    """Scores a fine-tuned run on its dev file, or on the file `data`.

    Writes the predictions, and `metrics.json` where it is the run's own dev file.

    Raises:
        UserError: `path` is not a finished or interrupted fine-tuning run, or the data is wrong.
    """
    run = RunFolder.open(path)
    if run.config.task not in TASKS:
        raise UserError(f"{path} is a {run.config.task} run; its metrics are in metrics.json")
    checkpoint = reading.find(path)
    tokenizer = setup.make_tokenizer(run)
    task = TASKS[run.config.task](run.config, tokenizer, checkpoint.description.labels)
    model = checkpoint.description.build()
    checkpoint.fill(model)
    files = {"": Path(data)} if data else task.files("dev")
    rows = {ending: task.read(path) for ending, path in files.items()}
    metrics = _score(task, model, rows, run.predictions, Path(data).stem if data else "dev")
    if data:
        say(f"{data}: {describe_metrics(metrics)}")
    else:
        report(run, metrics)
    return metrics
