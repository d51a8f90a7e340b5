"""`bert-tf finetune`: a pre-trained encoder learns one task."""

import contextlib
import functools
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bert_tf.checkpoints import reading
from bert_tf.checkpoints.description import describe
from bert_tf.config.run import FinetuningRun
from bert_tf.data.batching import TrainingRows, training_batches
from bert_tf.errors import UserError
from bert_tf.optimization import make_optimizer
from bert_tf.tasks import registry
from bert_tf.tasks.task import Task
from bert_tf.training import depth, setup
from bert_tf.training.checkpointing import DEV_DATA, TRAINING_DATA, Checkpoints
from bert_tf.training.evaluations import Evaluations
from bert_tf.training.fingerprint import fingerprint, of_files
from bert_tf.training.fit import Phase, train
from bert_tf.training.nonfinite import check_dev_loss
from bert_tf.training.run_folder import RunFolder
from bert_tf.training.scoring import score, trained
from bert_tf.training.search import check_sources, search
from bert_tf.training.strategies import check_batches
from bert_tf.training.team import Team, assemble
from bert_tf.training.tensorboard import Scalars


def finetune(config: FinetuningRun, out: str | os.PathLike) -> dict[str, float]:
    """Fine-tunes as `config` says, in the run folder `out`; resumes what was interrupted.

    Lists under `train` are searched: see `search`. Predictions are also written for the test files
    that there are.

    Returns:
        The metrics on the dev file, as in `metrics.json`.

    Raises:
        UserError: whatever the user can mend, in configuration, data or folder.
        Preempted: SIGTERM ended it.
    """
    team = assemble(config.train)
    if config.search and not team.alone:
        raise UserError(
            f"train.{next(iter(config.search))} is a list, which several workers cannot search "
            "together; search on one machine, or take one value"
        )
    for trial in config.trials():
        check_batches(team.strategy, trial.train)
    with team.losses_told(), RunFolder.shared(out, config, team) as run:
        metrics = _search(run, team) if config.search else _finetune(run, team, config.trials())
        team.told_by_chief(lambda: _predict_tests(run))
        return metrics


def _search(run: RunFolder[FinetuningRun], team: Team) -> dict[str, float]:
    """The metrics of the best trial.

    Mistakes in any trial that show without the data are reported before the first trial starts.
    """
    config, tokenizer = run.config, setup.make_tokenizer(run)
    sizes, trials = setup.encoder_config(config, tokenizer), config.trials()
    for trial in trials:
        task = registry.family(config.task).task_class()(trial)
        task.check_settings(tokenizer)
        setup.check_lengths(trial.train, sizes)
        depth.check(sizes.num_hidden_layers, trial.train)
    # All trials have the same data and metric.
    check_sources(run, _sources(task))
    run_trial = functools.partial(_run_trial, team=team, trials=trials)
    return search(run, run_trial, task.best_metric)


def _sources(task: Task) -> dict[str, str]:
    """What all trials of a search must have in common, with fingerprints."""
    vocabulary, start = task.config.tokenizer.vocab, task.config.init.checkpoint
    return {
        "init.checkpoint": of_files(_files_of(start)) if start else "",
        "vocabulary": of_files([Path(vocabulary)] if vocabulary else []),
        "training data": of_files(task.sources("train")),
        "dev data": of_files(task.sources("dev")),
    }


def _files_of(checkpoint: str) -> list[Path]:
    """The files that the weights at `checkpoint` are read from, and the files next to them."""
    folder = reading.find(checkpoint).folder
    paths = (*folder.glob("*"), *folder.glob("variables/*"))
    return sorted(path for path in paths if path.is_file())


def _run_trial(
    config: FinetuningRun, folder: Path, team: Team, trials: Sequence[FinetuningRun]
) -> dict[str, float]:
    """One run of a search: the test files are for the best one only."""
    with RunFolder.shared(folder, config, team) as run:
        return _finetune(run, team, trials)


def _finetune(
    run: RunFolder[FinetuningRun], team: Team, trials: Sequence[FinetuningRun]
) -> dict[str, float]:
    """Trains a run to its end.

    Args:
        run: the run.
        team: the processes that share the work.
        trials: what is run on the same data, this run included.
    """
    config, settings = run.config, run.config.train
    setup.seed_everything(settings)
    tokenizer = setup.make_tokenizer(run)
    task = registry.family(config.task).task_class()(config)
    task.check_settings(tokenizer)
    rows = task.training_rows()
    dev = {ending: task.read(path) for ending, path in task.files("dev").items()}
    # They are for when all is done; what is wrong with them is reported before.
    for path in task.test_files().values():
        task.read(path)
    with team.strategy.scope():
        encoder = setup.make_encoder(config, tokenizer)
        model = task.model(encoder, tokenizer)
    examples = model.examples(rows)
    _check_batches(task, examples, trials)
    steps = setup.total_updates(settings, len(examples.lengths))
    with team.strategy.scope():
        setup.load_initial_weights(config, model, task.labels)
        depth.freeze(encoder, settings)
        task.compile(
            model,
            optimizer=make_optimizer(settings, steps, depth.rate_factors(encoder, settings)),
            accumulation_steps=settings.accumulation_steps,
        )
    keep_best = settings.keep == "best"
    steps_compete = keep_best or settings.early_stopping is not None
    description = describe(model, tokenizer)
    train(
        run,
        model,
        Checkpoints(
            run.checkpoints,
            description,
            settings.checkpoints_kept,
            settings.checkpoint_steps,
            team.chief,
            {TRAINING_DATA: fingerprint(examples), DEV_DATA: of_files(task.sources("dev"))},
        ),
        [
            Phase(
                end=steps,
                batches_from=lambda start, part, parts: training_batches(
                    examples,
                    settings.batch_size,
                    settings.seed,
                    start,
                    part,
                    parts,
                    setup.fixed_length(settings),
                    settings.group_by_length,
                ),
                evaluate=lambda: score(task, model, dev),
                tokens=float(np.mean(examples.lengths)) * settings.batch_size,
            )
        ],
        Evaluations(
            settings.eval_steps or len(examples.lengths) // settings.batch_size,
            # Otherwise the run's own result, which follows, is that of the end.
            at_end=steps_compete,
            best_metric=task.best_metric,
            keep_best=keep_best,
            patience=settings.early_stopping,
        ),
        team,
    )

    def finish() -> dict[str, float]:
        metrics = score(task, model, dev, run.predictions, "dev")
        check_dev_loss(metrics)
        if not steps_compete:
            with contextlib.closing(Scalars(run.logs / "dev")) as scalars:
                scalars.write(steps, metrics)
        run.finish(metrics)
        return metrics

    return team.told_by_chief(finish)


def _check_batches(task: Task, examples: TrainingRows, trials: Sequence[FinetuningRun]) -> None:
    """Raises a UserError where a batch, also of a trial that comes later, is larger than the data.

    Trials with another `train.max_length` may have other examples, and are left to themselves.
    """
    rows, length = len(examples.lengths), task.config.train.max_length
    largest = max(each.train.batch_size for each in trials if each.train.max_length == length)
    if largest > rows:
        (path,) = task.files("train").values()
        raise UserError(
            f"train.batch_size {largest} is larger than the data: {path} gives {rows} rows or "
            "windows to train on; lower it"
        )


def _predict_tests(run: RunFolder[FinetuningRun]) -> None:
    """Writes predictions for the test files, where there are any."""
    if not registry.family(run.config.task).task_class()(run.config).test_files():
        return
    task, model = trained(run)
    for ending, path in task.test_files().items():
        rows = task.read(path)
        found = model.infer(rows)
        task.write_predictions(model, found, rows, run.predictions, f"test{ending}")
