"""A search with Optuna, which suggests the settings of each trial and then gets its score.

Several workers, with a folder each, share the trials of one storage.
"""

import functools
import hashlib
import json
import re
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
from pydantic import ValidationError

from bert_tf.config.changes import identity
from bert_tf.config.refusals import mistake
from bert_tf.config.run import FinetuningRun
from bert_tf.config.train import Range, SearchConfig
from bert_tf.console import logger
from bert_tf.dependencies import optional
from bert_tf.errors import UserError
from bert_tf.io.atomic import remove_folder
from bert_tf.runs.run_folder import SEARCH_FILE, RunFolder
from bert_tf.runs.search import Finetune, Pace, Trial, in_one_line, keep, run_once, write_table
from bert_tf.training.evaluations import Metrics, rank

_FOLDER, _METRICS, _END = "folder", "metrics", "end"  # what the storage says of a trial


class _Pruned(UserError):
    """The trial is worse than others were at the same time."""


class _Pruning(keras.callbacks.Callback):
    """Reports the metric of each evaluation to Optuna; ends the trial if it is behind others."""

    def __init__(self, trial: Any, metric: str):
        super().__init__()
        self._trial, self._metric = trial, metric

    def on_epoch_end(self, epoch: int, logs: Metrics | None = None) -> None:
        value = (logs or {})[f"val_{self._metric}"]
        with warnings.catch_warnings():  # a trial that goes on may report an evaluation again
            warnings.simplefilter("ignore")
            self._trial.report(value, epoch)
        if epoch + 1 < self.params["epochs"] and self._trial.should_prune():
            raise _Pruned(f"{self._metric} {value:.4g} is below the median of earlier trials")


def search(
    run: RunFolder[FinetuningRun], finetune: Finetune, metric: str, sources: Mapping[str, str]
) -> dict[str, float]:
    """Runs the configured number of trials, shared with other workers; keeps the best local one."""
    settings, searched = run.config.search or SearchConfig(), run.config.searched
    optuna, study = _opened(run, settings, sources)
    states, pace = optuna.trial.TrialState, Pace(settings.trials)
    ends = {"complete": states.COMPLETE, "invalid": states.FAIL}
    while (trial := _next(study, run, optuna.trial)) is not None:
        # The seed depends on the trial's number, so interruptions do not change the settings.
        seed = zlib.crc32(f"{settings.seed} {trial.number}".encode())
        study.sampler = optuna.samplers.TPESampler(seed=seed)
        chosen = {key: _chosen(trial, key, each) for key, each in searched.items()}
        pace.log(trial.number, _shown(chosen))
        callbacks = [("pruning", _Pruning(trial, metric))] if settings.prune else []
        end, metrics = _ended(run, trial.number, chosen, functools.partial(finetune, callbacks))
        trial.set_user_attr(_METRICS, metrics)
        trial.set_user_attr(_END, end)
        value = rank(metrics, metric)[0] if metrics else None
        study.tell(trial, value, ends.get(end, states.PRUNED))
        _write(run, study.trials, metric)
    _write(run, study.trials, metric)
    for each in study.get_trials(states=[states.RUNNING]):
        logger.info(
            f"trial {each.number + 1} has not ended; if no worker runs it, restart the worker of "
            f"{_folder(run, each)}, and run this command again afterwards"
        )
    trials = []
    for each in study.get_trials(states=[states.COMPLETE]):
        chosen = {key: _chosen(each, key, values) for key, values in searched.items()}
        config, metrics = run.config.trial(chosen), each.user_attrs[_METRICS]
        trials.append(Trial(_folder(run, each), config, chosen, metrics))
    trials.sort(key=lambda trial: rank(trial.metrics, metric), reverse=True)
    best = next((trial for trial in trials if trial.folder.is_dir()), None)
    if best is None:
        raise UserError(f"no trial of {run.path} was completed here; see its {SEARCH_FILE}")
    if best != trials[0]:
        logger.warning(f"the best trial is not on this machine: {trials[0].folder}")
    logger.info(f"best trial: {int(best.folder.name)}: {_shown(best.settings)}")
    return keep(run, best)


def _opened(
    run: RunFolder[FinetuningRun], settings: SearchConfig, sources: Mapping[str, str]
) -> tuple[Any, Any]:
    """Optuna, and the study of the run's configuration and data."""
    url = settings.storage or f"sqlite:///{run.path.absolute() / 'search.db'}"
    storage, place = url, f"{getattr(url, 'place', run.path)}: search"
    optuna = optional("optuna", "optuna", place)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    name = identity(run.config) + json.dumps(dict(sources), sort_keys=True)
    try:
        if "://" not in url:
            journal = optuna.storages.journal
            storage = journal.JournalStorage(journal.JournalFileBackend(url))
        study = optuna.create_study(
            storage=storage,
            study_name=f"bert_tf-{hashlib.sha256(name.encode()).hexdigest()[:16]}",
            direction="maximize",
            load_if_exists=True,
        )
    except Exception as error:
        shown = re.sub(r"://([^:/@]*):[^@]*@", r"://\1:***@", url)
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(
            f"{place}.storage {shown} cannot be opened ({said}); correct it, or make its folder"
        ) from None
    return optuna, study


def _next(study: Any, run: RunFolder[FinetuningRun], trials: Any) -> Any:
    """A trial of this worker that was cut short, or else a new one; None if there are enough."""
    for each in study.get_trials(states=[trials.TrialState.RUNNING]):
        if _folder(run, each) == _own_folder(run, each.number):
            return trials.Trial(study, each._trial_id)
    if run.config.search is None or len(study.trials) >= run.config.search.trials:
        return None
    trial = study.ask()
    trial.set_user_attr(_FOLDER, str(_own_folder(run, trial.number)))
    return trial


def _own_folder(run: RunFolder[FinetuningRun], number: int) -> Path:
    return run.trials.absolute() / f"{number + 1:04d}"


def _folder(run: RunFolder[FinetuningRun], trial: Any) -> Path:
    """The folder of a trial; if it is this worker's, below its run folder, which may have moved."""
    own = _own_folder(run, trial.number)
    return own if own.is_dir() else Path(trial.user_attrs.get(_FOLDER, "?"))


def _shown(settings: Mapping[str, object]) -> str:
    return in_one_line(
        {key: f"{each:.4g}" if isinstance(each, float) else each for key, each in settings.items()}
    )


def _ended(
    run: RunFolder[FinetuningRun], number: int, chosen: dict[str, object], finetune: Finetune
) -> tuple[str, dict[str, float]]:
    """How a trial ended, and its metrics; it is trained unless it has ended before."""
    folder = _own_folder(run, number)
    try:
        config = run.config.trial(chosen)
    except ValidationError as error:
        said = mistake(error, type(run.config.train), chosen, ("train",))[1]
        logger.warning(f"trial {number + 1} is skipped: {said}")
        return "invalid", {}
    try:
        metrics = run_once(run, folder.name, config, chosen, finetune).metrics
        return "complete" if metrics else "diverged", metrics
    except _Pruned as error:
        logger.info(f"trial {number + 1} is pruned: {error}")
        for checkpoint in folder.glob("checkpoints/step-*"):
            remove_folder(checkpoint)
        return "pruned", {}


def _write(run: RunFolder[FinetuningRun], trials: list[Any], metric: str) -> None:
    """Writes the table of all trials; one that was pruned has its last metric."""
    rows = []
    for each in trials:
        reported, known = each.intermediate_values, each.user_attrs
        last = {metric: reported[max(reported)]} if reported else {}
        row = {"trial": each.number + 1, **each.params, "end": known.get(_END, "")}
        rows.append(row | (known.get(_METRICS) or last))
    write_table(run.path / SEARCH_FILE, rows)


def _chosen(trial: Any, key: str, values: Any) -> Any:
    """The value of a key in a trial, which is drawn only once."""
    if isinstance(values, Range):
        is_int = isinstance(values.low, int)
        step = values.step or (1 if is_int else None)
        suggest = trial.suggest_int if is_int else trial.suggest_float
        return suggest(key, values.low, values.high, step=step, log=values.log)
    plain = bool | int | float | None
    names = {each if isinstance(each, plain) else str(each): each for each in values}
    return names[trial.suggest_categorical(key, list(names))]
