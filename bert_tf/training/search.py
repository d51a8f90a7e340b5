"""A search: every combination of the lists under `train`, and the best of them kept."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from bert_tf.config import RunConfig
from bert_tf.files import atomic_path, write_text
from bert_tf.progress import say
from bert_tf.training.callbacks import Metrics
from bert_tf.training.fit import report
from bert_tf.training.run_folder import RunFolder


def search(
    config: RunConfig,
    out: str | os.PathLike,
    finetune: Callable[[RunConfig, Path], Metrics],
    best_metric: str,
) -> Metrics:
    """Runs every trial of `config` in a folder under `out`/trials, and makes `out` the best.

    Trials that are finished are not run again. `search.tsv` holds the results so far.

    Args:
        config: a configuration with a search.
        out: the run folder.
        finetune: runs one trial in its folder and gives its dev metrics.
        best_metric: the metric of which the highest is best; among equals the lowest loss.

    Returns:
        The metrics of the best trial.
    """
    run = RunFolder.start(out, config)
    results: dict[str, Metrics] = {}
    for trial in config.trials():
        name = ",".join(f"{key}={getattr(trial.train, key)}" for key in config.search)
        folder = run.path / "trials" / name
        done = RunFolder.start(folder, trial).read_metrics()
        results[name] = done or finetune(trial, folder)
        _write_table(run.path / "search.tsv", results)
        say(f"trial {len(results)} of {len(config.trials())}: {name}")
    best = max(results, key=lambda name: (results[name][best_metric], -results[name]["loss"]))
    say(f"best trial: {best}")
    for kept in (run.checkpoints, run.predictions):
        with atomic_path(kept) as new:
            shutil.copytree(run.path / "trials" / best / kept.name, new)
    report(run, results[best])
    return results[best]


def _write_table(path: Path, results: dict[str, Metrics]) -> None:
    metrics = list(next(iter(results.values())))
    lines = ["\t".join(["trial", *metrics])]
    lines += [
        "\t".join([name, *(f"{result[metric]:.6g}" for metric in metrics)])
        for name, result in results.items()
    ]
    write_text(path, "\n".join(lines) + "\n")
