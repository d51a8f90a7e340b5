"""A search: every combination of the lists under `train`, and the best of them kept.

Where `train.seed` is one of the lists, its values are repetitions: settings are compared by their
mean over the seeds, and of the best settings the best run is kept.
"""

import dataclasses
import shutil
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bert_tf.checkpoints import of_run
from bert_tf.config import RunConfig
from bert_tf.errors import UserError
from bert_tf.files import atomic_path, remove_folder, write_text
from bert_tf.progress import say
from bert_tf.training.custom_gradients import gradients_forgotten
from bert_tf.training.evaluations import rank
from bert_tf.training.nonfinite import Diverged
from bert_tf.training.run_folder import BEST_FILE, RunFolder
from bert_tf.training.tensorboard import write_trial

Finetune = Callable[[RunConfig, Path], dict[str, float]]


@dataclasses.dataclass(frozen=True)
class Trial:
    """One run of a search that came to its end.

    Attributes:
        name: of its folder.
        config: what it did.
        settings: the searched keys and their values.
        metrics: on the dev data.
    """

    name: str
    config: RunConfig
    settings: dict[str, object]
    metrics: dict[str, float]

    @property
    def without_seed(self) -> tuple[tuple[str, object], ...]:
        """What its repetitions have in common."""
        return tuple((key, value) for key, value in self.settings.items() if key != "seed")


def search(run: RunFolder, finetune: Finetune, best_metric: str) -> dict[str, float]:
    """Runs every trial of the run's configuration, and makes the run the best of them.

    Each trial is a run folder under `trials`; what is finished is not run again, and of a finished
    one only the checkpoint with its final weights stays. `search.tsv` has a line for each trial so
    far, `summary.tsv` mean and standard deviation over the seeds of each setting, `best.yaml` the
    configuration of the best trial. Trials whose loss is no longer a number are left out.

    Args:
        run: a run whose configuration has a search.
        finetune: runs one trial in a folder and gives its dev metrics.
        best_metric: the metric of which the highest is best; among equals the lowest loss.

    Returns:
        The metrics of the best trial.

    Raises:
        UserError: as `finetune`; every trial diverged.
    """
    trials = []
    configs = run.config.trials()
    for number, config in enumerate(configs, start=1):
        settings = {key: getattr(config.train, key) for key in run.config.search}
        name = ",".join(f"{key}={value}" for key, value in settings.items())
        say(f"trial {number} of {len(configs)}: {name}")
        try:
            metrics = _run_once(config, run.path / "trials" / name, finetune)
        except Diverged as error:
            say(f"{name}: {error}")
            continue
        trials.append(Trial(name, config, settings, metrics))
        if not (run.logs / "trials" / name).exists():
            write_trial(run.logs / "trials" / name, name, settings, metrics)
        _write_table(run.path / "search.tsv", [each.settings | each.metrics for each in trials])
        if "seed" in settings:
            _write_table(run.path / "summary.tsv", _summary(trials))
    if not trials:
        raise UserError(f"every trial of {run.path} diverged; lower train.learning_rate")
    best = _best(trials, best_metric)
    say(f"best trial: {best.name}{_spread(best, trials, best_metric)}")
    is_still_the_best = run.trained_with == best.config
    for kept in (run.checkpoints, run.predictions):
        with atomic_path(kept) as new:
            if is_still_the_best and kept == run.predictions and kept.exists():
                # What `evaluate` has found on other data since.
                shutil.copytree(kept, new)
            trial = run.path / "trials" / best.name
            shutil.copytree(trial / kept.name, new, dirs_exist_ok=True)
    write_text(run.path / BEST_FILE, best.config.to_yaml())
    run.finish(best.metrics)
    return best.metrics


def _run_once(config: RunConfig, folder: Path, finetune: Finetune) -> dict[str, float]:
    """The metrics of a trial, from its folder if it is finished."""
    done = RunFolder.start(folder, config).read_metrics()
    if done is None:
        with gradients_forgotten():
            done = finetune(config, folder)
    kept = of_run.kept(folder)
    for checkpoint in sorted(kept.parent.glob("step-*")):
        if checkpoint != kept:
            remove_folder(checkpoint)
    return done


def _best(trials: Iterable[Trial], best_metric: str) -> Trial:
    settings = max(_repeated(trials), key=lambda same: rank(_means(same), best_metric))
    return max(settings, key=lambda trial: rank(trial.metrics, best_metric))


def _spread(best: Trial, trials: Iterable[Trial], metric: str) -> str:
    """Mean and deviation over the seeds of the best setting, where there are several, in words."""
    values = [t.metrics[metric] for t in trials if t.without_seed == best.without_seed]
    if len(values) == 1:
        return ""
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    return f"; {metric} {mean:.4g} ± {deviation:.2g} over {len(values)} seeds"


def _repeated(trials: Iterable[Trial]) -> list[list[Trial]]:
    """The trials, those together that differ in nothing but the seed."""
    groups: dict[tuple, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.without_seed, []).append(trial)
    return list(groups.values())


def _means(trials: Iterable[Trial]) -> dict[str, float]:
    return {name: statistics.fmean(values) for name, values in _values(trials).items()}


def _values(trials: Iterable[Trial]) -> dict[str, list[float]]:
    """The results by metric; a metric may not be defined for every trial."""
    values: dict[str, list[float]] = {}
    for trial in trials:
        for name, value in trial.metrics.items():
            values.setdefault(name, []).append(value)
    return values


def _summary(trials: Iterable[Trial]) -> list[dict[str, object]]:
    """For each setting mean and sample standard deviation of the metrics; one run has none."""
    rows = []
    for same in _repeated(trials):
        row: dict[str, object] = {**dict(same[0].without_seed), "runs": len(same)}
        for name, values in _values(same).items():
            row[name] = statistics.fmean(values)
            row[f"{name}_std"] = statistics.stdev(values) if values[1:] else ""
        rows.append(row)
    return rows


def _write_table(path: Path, rows: Sequence[dict[str, object]]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([_cell(row.get(name, "")) for name in columns] for row in rows)]
    write_text(path, "".join("\t".join(line) + "\n" for line in lines))


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
