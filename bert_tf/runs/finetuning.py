"""`bert-tf finetune`: a pre-trained encoder learns one task."""

import contextlib
import functools
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf import __version__
from bert_tf.asking import say_cut
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.config.imported import import_all
from bert_tf.config.run import CalibratedRun, FinetuningRun
from bert_tf.console import logger
from bert_tf.data import arrow
from bert_tf.data.batching import TrainingRows, training_batches
from bert_tf.data.columns import Columns
from bert_tf.distillation.teaching import Teaching
from bert_tf.encoder.config import POLICIES
from bert_tf.errors import UserError
from bert_tf.io.remote import cache_folder, local_path
from bert_tf.optimization import make_optimizer
from bert_tf.runs import setup, study
from bert_tf.runs.fingerprint import fingerprint, of_files, of_rows, of_weights
from bert_tf.runs.run_folder import RunFolder
from bert_tf.runs.scoring import more_metrics, score, trained
from bert_tf.runs.search import check_sources, search
from bert_tf.tasks import fitting, registry, uncertainty
from bert_tf.tasks.classification import LabelTrain, few_shot
from bert_tf.tasks.from_checkpoint import OF_VECTORS, find
from bert_tf.tasks.loading import load_model
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_model import TaskModel
from bert_tf.training import layerwise_lr
from bert_tf.training.adapter import Adapter
from bert_tf.training.callbacks import Named
from bert_tf.training.checkpointing import DEV_DATA, TEACHER, TRAINING_DATA
from bert_tf.training.distributed import Cluster, assemble
from bert_tf.training.evaluations import Evaluations
from bert_tf.training.loop import Phase, train
from bert_tf.training.nonfinite import check_dev_loss
from bert_tf.training.strategies import check_batches
from bert_tf.training.tensorboard import Scalars

# From this number of rows on, the tokens of Parquet or `datasets` rows are cached on the disk.
_MANY_ROWS = 50_000


def finetune(config: FinetuningRun, out: str | os.PathLike) -> dict[str, float]:
    """Fine-tunes as `config` says, in the run folder `out`; resumes an interrupted run.

    Lists under `train` are searched: see `search`. Predictions are also written for the test files.

    Returns:
        The metrics on the dev file, as in `metrics.json`.

    Raises:
        UserError: a mistake in the configuration, the data or the folder.
        Preempted: SIGTERM ended the run.
    """
    cluster = assemble(config.train)
    if config.searched and not cluster.alone:
        raise UserError(
            f"train.{next(iter(config.searched))} is a list, but several workers cannot search "
            "together; search on one machine, or set one value"
        )
    import_all(each for c in config.trials() for some in c.train.named.values() for each in some)
    for trial in config.trials():
        check_batches(cluster.strategy, trial.train)
    with cluster.losses_explained(), RunFolder.shared(out, config, cluster) as run:
        data = _Data(run)
        # Finds mistakes in any trial that show without the data.
        sizes = setup.encoder_config(run, data.tokenizer)
        for trial in data.trials:
            data.task.of_trial(trial).check_settings(data.tokenizer)
            setup.check_lengths(trial.train, sizes)
            layerwise_lr.check(sizes.num_hidden_layers, trial.train)
        metrics = _search(run, data, cluster) if config.searched else _finetune(run, data, cluster)
        cluster.from_chief(lambda: _predict_tests(run, data))
        return metrics


class _Data:
    """The data of a run, or of all trials of a search: read once, and encoded once."""

    def __init__(self, run: RunFolder[FinetuningRun]):
        self.tokenizer = setup.make_tokenizer(run)
        self.trials = run.config.trials()
        family = registry.family(run.config.task)
        self.task = family.task_class()(self.trials[0])
        known = None if run.initial is None else run.initial.description
        if known is not None and known.model == family.class_name:
            self.task.initial = {**known.head, **known.settings}
        elif known is not None and getattr(self.trials[0].train, "few_shot", False):
            self.task.initial = {n: known.settings[n] for n in OF_VECTORS if n in known.settings}
        self.training_rows: Any = None  # known after `task_of`
        self._files: dict[Path, Any] = {}
        self._examples: dict[str, tuple[TrainingRows, str]] = {}
        self._teachers: dict[str, TaskModel] = {}

    def task_of(self, trial: FinetuningRun) -> Task:
        """The task of a trial; it knows what the training rows decide, such as the labels."""
        if self.training_rows is None:
            self.training_rows = self.task.training_rows()
        return self.task.of_trial(trial)

    def read(self, task: Task, split: str) -> dict[str, Any]:
        """The rows of each file of "dev" or "test", by the ending of its metrics' names."""
        files = task.test_files() if split == "test" else task.files(split)
        for path in files.values():
            if path not in self._files:
                self._files[path] = task.read(path)
        return {ending: self._files[path] for ending, path in files.items()}

    def examples(self, model: TaskModel) -> tuple[TrainingRows, str]:
        """The training rows encoded for `model`, and their fingerprint; once for equal settings."""
        settings = str(model.settings)
        if settings not in self._examples:
            rows = self.training_rows
            say_cut(model, rows.values)
            for more in self._unlabelled:  # rows whose labels weigh 0
                rows = rows.and_unlabelled(more)
            weights = self.task.class_weight
            is_arrow = self.task.data.format in arrow.FORMATS and isinstance(rows, Columns)
            if is_arrow and len(rows) >= _MANY_ROWS:
                model.tokens = cache_of(model, rows, weights)
            examples = model.examples(rows, weights)
            model.tokens = None
            self._examples[settings] = examples, fingerprint(examples)
        return self._examples[settings]

    @functools.cached_property
    def _unlabelled(self) -> list[Any]:
        return [self.task.read(path) for path in self.unlabelled_files]

    @property
    def unlabelled_files(self) -> list[Path]:
        """Files of rows to learn from a teacher alone."""
        settings = self.trials[0].distillation
        found = () if settings is None else settings.unlabelled or ()
        return [local_path(path) for path in ([found] if isinstance(found, str) else found)]

    def teaching(self, config: FinetuningRun, model: TaskModel) -> Teaching | None:
        """What the model of a trial learns from its teacher, if it has one."""
        settings, dtype = config.distillation, POLICIES[config.train.precision]
        if settings is None:
            return None
        if dtype not in self._teachers:
            layout = model.encoder.layout
            self._teachers[dtype] = load_model(settings.teacher, dtype=dtype, layout=layout)
        has_metrics = not self.unlabelled_files
        teaching = Teaching(model, self._teachers[dtype], settings, has_metrics=has_metrics)
        teaching.check_rematerialize(config.train.rematerialize)
        return teaching

    @functools.cached_property
    def dev_fingerprint(self) -> str:
        return of_files(self.task.sources("dev"))


def cache_of(model: TaskModel, rows: Columns, class_weight: Any) -> Path:
    """The folder of the tokenized rows, named by the data, the tokenizer and the settings."""
    tokenizer = model.tokenizer
    how = [__version__, tokenizer.settings.to_dict(), tokenizer.vocabulary, class_weight]
    how += [type(model).__name__, model.settings, model.labels]
    folder = cache_folder() / "tokens" / of_rows(rows, how)
    logger.info(f"{rows.source}: {len(rows):,} rows are tokenized once, into {folder}")
    return folder


def _search(run: RunFolder[FinetuningRun], data: _Data, cluster: Cluster) -> dict[str, float]:
    """The metrics of the best trial; only this one predicts the test files."""

    def run_trial(callbacks: Named, trial: RunFolder[FinetuningRun]) -> dict[str, float]:
        with RunFolder.in_use(trial.path):
            return _finetune(trial, data, cluster, callbacks)

    vocabulary, distillation = run.config.tokenizer.vocab, run.config.distillation
    teacher = None if distillation is None else find(distillation.teacher)
    sources = {
        "init.checkpoint": of_files(_files_of(run.initial)) if run.initial else "",
        "vocabulary": of_files([local_path(vocabulary)] if vocabulary else []),
        "training data": of_files([*data.task.sources("train"), *data.unlabelled_files]),
        "teacher": of_files(_files_of(teacher)) if teacher else "",
        "dev data": data.dev_fingerprint,
    }
    check_sources(run, sources)
    if run.config.search is not None:
        return study.search(run, run_trial, data.task.best_metric, sources)
    return search(run, functools.partial(run_trial, ()), data.task.best_metric)


def _files_of(checkpoint: Checkpoint) -> list[Path]:
    """The files that the weights of a checkpoint are read from, and the files next to them."""
    folder = checkpoint.folder
    paths = (*folder.glob("*"), *folder.glob("variables/*"))
    return sorted(path for path in paths if path.is_file())


def _finetune(
    run: RunFolder[FinetuningRun], data: _Data, cluster: Cluster, more_callbacks: Named = ()
) -> dict[str, float]:
    """Trains a run, which may be a trial of a search, to its end."""
    settings, tokenizer = run.config.train, data.tokenizer
    setup.seed_everything(settings)
    task = data.task_of(run.config)
    dev = data.read(task, "dev")

    def read_tests() -> None:  # reports mistakes before training; other workers need no rows
        data.read(task, "test")

    cluster.from_chief(read_tests)
    with cluster.strategy.scope():
        encoder = setup.make_encoder(run, tokenizer)
        model = task.model(encoder, tokenizer)
    dev_rows = next(iter(dev.values()))
    calibrates = isinstance(run.config, CalibratedRun) and run.config.calibrate
    if calibrates:
        uncertainty.check_targets(model.calibration_targets(dev_rows))
    examples, source = data.examples(model)
    is_few = isinstance(settings, LabelTrain) and settings.few_shot
    # Trials with another `train.max_length` may have other examples.
    alike = [each.train for each in data.trials if each.train.max_length == settings.max_length]
    largest = max((each.batch_size for each in alike), default=0)
    rows = len(examples.lengths)
    if largest > rows and not is_few:
        (path,) = task.files("train").values()
        raise UserError(
            f"train.batch_size {largest} is larger than the data: {path} has {rows} training rows "
            "or windows; lower it"
        )
    # Rows that fill no batch at the end of an epoch are left out.
    steps_per_epoch = rows // settings.batch_size
    steps = setup.total_updates(settings, steps_per_epoch)
    with cluster.strategy.scope():
        setup.load_initial_weights(run, model, task.labels)
        layerwise_lr.freeze(encoder, settings)
        model.teaching = data.teaching(run.config, model)
        if settings.adapter is not None and not is_few:
            Adapter(model, settings.adapter).attach()
        task.compile(
            model,
            optimizer=make_optimizer(settings, steps, layerwise_lr.rate_factors(encoder, settings)),
            accumulation_steps=settings.accumulation_steps,
            rematerialize=settings.rematerialize,
        )
    keep_best = settings.keep == "best"
    callbacks = [*setup.make_callbacks(run, steps), *more_callbacks]
    evaluates_last = keep_best or settings.early_stopping is not None or bool(callbacks)
    more = more_metrics(settings.named["metrics"], model, dev)
    sources = {TRAINING_DATA: source, DEV_DATA: data.dev_fingerprint}
    if model.teaching is not None:
        sources[TEACHER] = of_weights(model.teaching.teacher)
    checkpoints = setup.make_checkpoints(run, model, tokenizer, cluster.chief, sources)
    phase = Phase(
        end=steps,
        batches_from=functools.partial(
            training_batches,
            examples,
            settings.batch_size,
            settings.seed,
            length=setup.fixed_length(settings),
            group_by_length=settings.group_by_length,
        ),
        evaluate=lambda: more(score(task, model, dev)),
        tokens=float(np.mean(examples.lengths)) * settings.batch_size,
    )
    evaluations = Evaluations(
        settings.eval_steps or steps_per_epoch,
        # Otherwise only `finish` evaluates at the end of training.
        at_end=evaluates_last,
        best_metric=task.best_metric,
        keep_best=keep_best,
        patience=settings.early_stopping,
    )
    if is_few:
        model.optimizer.build(model.trainable_variables)
        # Few-shot learning saves nothing before its end: an interrupted run begins again.
        if not checkpoints.restore(model, evaluations):
            few_shot.learn(model, data.training_rows, settings, verbose=2)
            checkpoints.save(model, steps, evaluations)
        updated: float | None = time.monotonic()
    else:
        updated = train(
            run.path, settings, model, checkpoints, [phase], evaluations, cluster, callbacks
        )
    model.teaching = None
    if model.adapter is not None:
        model.adapter.merge()

    def finish() -> dict[str, float]:
        found = fitting.calibrate_on(model, dev_rows) if calibrates else {}
        metrics = more(score(task, model, dev, run.predictions, "dev"))
        check_dev_loss(metrics)
        metrics |= found
        if not evaluates_last:
            with contextlib.closing(Scalars(run.logs / "dev")) as scalars:
                scalars.write(steps, metrics)
        run.finish(metrics, updated)
        return metrics

    return cluster.from_chief(finish)


def _predict_tests(run: RunFolder[FinetuningRun], data: _Data) -> None:
    if not data.task.test_files():
        return
    start = time.monotonic()
    task, model = trained(run)
    for ending, rows in data.read(task, "test").items():
        task.write_predictions(model, model.infer(rows), rows, run.predictions, f"test{ending}")
    seconds = time.monotonic() - start
    logger.info(f"{run.path}: test predictions written in {seconds:.1f} s")
