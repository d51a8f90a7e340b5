"""A search over every combination of the lists under `train`; the best trial is kept.

Where `train.seed` is one of the lists, settings are compared by their mean over the seeds.
"""

import dataclasses
import json
import shutil
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.checkpoints import of_run
from bert_tf.checkpoints.of_run import BEST_FILE
from bert_tf.checkpoints.plain_json import read_object
from bert_tf.config.run import FinetuningRun
from bert_tf.console import clock, logger
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path, remove_folder, write_text
from bert_tf.io.json_files import read_json, value_at
from bert_tf.runs.run_folder import DIVERGED_FILE, SEARCH_FILE, SUMMARY_FILE, RunFolder
from bert_tf.training.evaluations import rank
from bert_tf.training.nonfinite import Diverged
from bert_tf.training.tensorboard import write_trial

Finetune = Callable[..., dict[str, float]]  # trains a trial
_SOURCES_FILE = "sources.json"  # the fingerprints that `check_sources` compares
_FOUND, _SKIPS = "found", "skip_nonfinite"  # what is noted of a trial that diverged


@dataclasses.dataclass(frozen=True)
class Trial:
    """One run of a search."""

    folder: Path
    config: FinetuningRun
    settings: dict[str, object]
    metrics: dict[str, float]  # on the dev data; none if it diverged


def check_sources(run: RunFolder[FinetuningRun], sources: Mapping[str, str]) -> None:
    """Raises UserError if a search is resumed with other `sources`, fingerprints by name."""
    file = run.path / _SOURCES_FILE
    if not (run.has_saved and file.exists()):
        write_text(file, json.dumps(sources, indent=2) + "\n")
        return
    before = read_object(file, "record of the sources of a search")
    for name, found in sources.items():
        if before.get(name, found) != found:  # older versions recorded fewer sources
            raise UserError(
                f"the {name} changed since the first trials of {run.path}; restore the old state, "
                "or choose another --out"
            )


def search(run: RunFolder[FinetuningRun], finetune: Finetune, best_metric: str) -> dict[str, float]:
    """Runs every trial, each a run folder under `trials`, and makes the run the best of them."""
    trials: list[Trial] = []
    configs = run.config.trials()
    pace = Pace(len(configs))
    for number, config in enumerate(configs):
        settings = {key: getattr(config.train, key) for key in run.config.searched}
        name = in_one_line(settings)
        pace.log(number, name)
        trials.append(run_once(run, name, config, settings, finetune))
        write_table(run.path / SEARCH_FILE, [each.settings | each.metrics for each in trials])
        if "seed" in settings:
            write_table(run.path / SUMMARY_FILE, [row for _, row in _summary(trials)])
    if not any(trial.metrics for trial in trials):
        raise UserError(f"every trial of {run.path} diverged; lower train.learning_rate")
    best, spread = _best(trials, best_metric)
    logger.info(f"best trial: {best.folder.name}{spread}")
    return keep(run, best)


class Pace:
    """Logs which trial begins, and how long all of them may take."""

    def __init__(self, total: int):
        self._total, self._began, self._first = total, time.monotonic(), -1

    def log(self, number: int, name: str) -> None:
        """Logs that a trial begins, after `number` others; those of this session show the pace."""
        self._first = number if self._first < 0 else self._first
        seconds, left = time.monotonic() - self._began, ""
        if done := number - self._first:
            rate = f"{3600 * done / max(seconds, 1e-9):,.0f} trials/h"
            left = f"  {rate}  {clock((self._total - number) * seconds / done)} left"
        logger.info(f"trial {number + 1} of {self._total}: {name}{left}")


def in_one_line(settings: Mapping[str, object]) -> str:
    """Settings as they are printed, and as the folder of a trial of a grid is named."""
    return ",".join(f"{key}={value}" for key, value in settings.items())


def keep(run: RunFolder[FinetuningRun], best: Trial) -> dict[str, float]:
    """Gives the run the checkpoint, predictions, configuration and metrics of its best trial."""
    trial, is_still_the_best = best.folder, run.trained_with == best.config
    places = [run.checkpoints, run.predictions]
    if is_still_the_best and of_run.step_folders(run.checkpoints):
        places.remove(run.checkpoints)
    elif not of_run.step_folders(trial / run.checkpoints.name):
        raise UserError(
            f"{trial} is the best trial, but its checkpoint is missing; restore it, or remove the "
            "folder to train it again"
        )
    for kept in places:
        with atomic_path(kept) as new:
            if is_still_the_best and kept == run.predictions and kept.exists():
                # Keeps the results of `evaluate` on other data.
                shutil.copytree(kept, new)
            shutil.copytree(trial / kept.name, new, dirs_exist_ok=True)
    write_text(run.path / BEST_FILE, best.config.to_yaml())
    run.finish(best.metrics)
    return best.metrics


def run_once(
    search: RunFolder[FinetuningRun],
    name: str,
    config: FinetuningRun,
    settings: dict[str, object],
    finetune: Finetune,
) -> Trial:
    """A trial that has ended, perhaps before; it has no metrics if it diverged."""
    run = RunFolder.start(search.trials / name, config, lambda _: search.initial)
    trial = Trial(run.path, config, settings, _metrics_of(run, finetune))
    logs = search.logs / "trials" / name
    if trial.metrics and not logs.exists():
        write_trial(logs, name, settings, trial.metrics)
    return trial


def _metrics_of(run: RunFolder[FinetuningRun], finetune: Finetune) -> dict[str, float]:
    metrics, found = run.read_metrics(), _divergence(run)
    if metrics is None and found is None:
        try:
            metrics = finetune(run)
        except Diverged as error:
            found = error.found
            # Skipping updates may help a trial that diverged, so that setting is noted too.
            noted = {_FOUND: found, _SKIPS: run.config.train.skip_nonfinite}
            write_text(run.path / DIVERGED_FILE, json.dumps(noted, indent=2) + "\n")
    if metrics is None:
        logger.warning(f"trial {run.path.name} is skipped: {found}")
        return {}
    checkpoints = of_run.step_folders(run.checkpoints)
    # A user may have removed them all to save space: only those of the best trial are needed.
    kept = of_run.kept(run.path) if checkpoints else None
    for checkpoint in checkpoints:
        if checkpoint != kept:
            remove_folder(checkpoint)
    return metrics


def _divergence(run: RunFolder[FinetuningRun]) -> str | None:
    """What was noted of a trial that diverged with the same settings."""
    file = run.path / DIVERGED_FILE
    if not file.exists():
        return None
    noted = read_json(file)
    skips = value_at(file, "", noted, _SKIPS, bool)
    found = value_at(file, "", noted, _FOUND, str)
    return found if skips == run.config.train.skip_nonfinite else None


def _summary(trials: Iterable[Trial]) -> Iterator[tuple[list[Trial], dict[str, Any]]]:
    """The trials of each setting, and its mean and sample standard deviation of the metrics."""
    groups: dict[tuple, list[Trial]] = {}
    for trial in trials:
        setting = tuple((key, value) for key, value in trial.settings.items() if key != "seed")
        groups.setdefault(setting, []).append(trial)
    for setting, same in groups.items():
        ended = [trial.metrics for trial in same if trial.metrics]
        row: dict[str, Any] = {**dict(setting), "runs": len(ended)}
        for name in dict.fromkeys(name for metrics in ended for name in metrics):
            values = [metrics[name] for metrics in ended if name in metrics]
            row[name] = statistics.fmean(values)
            row[f"{name}_std"] = statistics.stdev(values) if values[1:] else ""
        yield same, row


def _best(trials: Iterable[Trial], metric: str) -> tuple[Trial, str]:
    """The best trial of the best setting, and this setting's spread over the seeds, in words."""

    def standing(setting: tuple[list[Trial], dict[str, Any]]) -> tuple[bool, tuple[float, float]]:
        same, row = setting
        return row["runs"] == len(same), rank(row, metric)

    same, row = max((each for each in _summary(trials) if each[1]["runs"]), key=standing)
    best = max((t for t in same if t.metrics), key=lambda trial: rank(trial.metrics, metric))
    if row["runs"] == 1:
        return best, ""
    mean, deviation = row[metric], row[f"{metric}_std"]
    return best, f"; {metric} {mean:.4g} ± {deviation:.2g} over {row['runs']} seeds"


def write_table(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """Writes a line for each row, under the names of all columns that some row has."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([cell(row.get(name, "")) for name in columns] for row in rows)]
    write_text(path, "".join("\t".join(line) + "\n" for line in lines))


def cell(value: object) -> str:
    """The text of a setting or a metric in a table."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
