"""`bert-tf finetune` and `bert-tf evaluate`: a pre-trained encoder for one task."""

import os
from pathlib import Path

import keras

from bert_tf.checkpoints import reading
from bert_tf.checkpoints.description import describe
from bert_tf.config import RunConfig
from bert_tf.errors import UserError
from bert_tf.progress import say
from bert_tf.tasks import TASKS
from bert_tf.training import setup
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
    keras.utils.set_random_seed(config.train.seed)
    tokenizer = setup.make_tokenizer(run)
    task = TASKS[config.task](config, tokenizer)
    per_epoch = task.steps_per_epoch()
    steps = config.train.steps or round(config.train.epochs * per_epoch)
    dev = task.read(task.path("dev"))
    model = task.model(setup.make_encoder(config, tokenizer))
    setup.load_initial_weights(config, model)
    task.compile(model, setup.make_optimizer(config.train, steps))
    description = describe(model, tokenizer, task.labels)
    checkpoints = Checkpoints(run.checkpoints, description, config.train.checkpoints_kept)
    train(
        run,
        model,
        checkpoints,
        task.train_batches,
        steps,
        config.train.eval_steps or per_epoch,
        lambda: task.score(task.predict(model, dev), dev),
    )
    predictions = task.predict(model, dev)
    task.write_predictions(predictions, run.predictions / "dev.tsv")
    metrics = task.score(predictions, dev)
    report(run, metrics)
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
    file = Path(data) if data else task.path("dev")
    rows = task.read(file)
    predictions = task.predict(model, rows)
    task.write_predictions(predictions, run.predictions / f"{file.stem}.tsv")
    metrics = task.score(predictions, rows)
    if data:
        say(f"{file}: " + "  ".join(f"{name} {value:.4g}" for name, value in metrics.items()))
    else:
        report(run, metrics)
    return metrics
