"""Fine-tuning quality and time compared with transformers on PyTorch, over several seeds.

    python -m bert_tf.experiments.squad.split_by_article dev-v1.1.json --train 38 \
        --out squad_by_article
    python -m benchmarks.quality --checkpoint FOLDER --data DATA --glue GLUE \
        --squad squad_by_article --out experiments/results/quality

FOLDER is a Hugging Face checkpoint; DATA holds wnut17 and codah, GLUE holds SST-2 and CoLA. Both
sides have the same rows, seeds, hyper-parameters and optimizer, start from the same weights, the
head's included, and draw their batches at random. The sides take turns. Each run is a process of
its own, which keeps the memory that it frees (see `benchmarks.allocation`). Its result is kept in
`--out` with its settings and the checksums of its files. Started again with the same arguments, the
script does what is left. All runs of a line are from one machine with the same libraries. Lines may
be from different machines, which the table names, as all lines take some ten hours. The table has
mean and standard error over the seeds, of the scores and of the differences by seed, as both sides
of a seed start with the same head. It also has the ratios of the median times from the start of a
process to its predictions on the held-out rows (both sides evaluate once): on the clock, and of the
processors, which other work on the machine disturbs less.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import kept
from benchmarks.allocation import KEEPS_MEMORY, environment
from benchmarks.quality.tasks import AS_TRANSFORMERS, HEAD, QualityTask, tasks
from bert_tf.cli import command
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text
from bert_tf.report import commit, cores, processor

# Each with the libraries that it computes with.
LIBRARIES = {"bert_tf": ("tensorflow", "keras"), "transformers": ("torch", "transformers")}
SIDES = tuple(LIBRARIES)
# All processors that this process may use; TensorFlow uses as many threads by default.
THREADS = len(os.sched_getaffinity(0))


def main() -> int:
    """Runs what is not done yet, prints the table; gives the exit code (`bert_tf.cli.command`)."""
    parser = command.module_parser("benchmarks.quality", __doc__)
    parser.add_argument("--checkpoint", required=True, help="a Hugging Face folder")
    parser.add_argument("--data", type=Path, required=True, help="holds wnut17 and codah")
    parser.add_argument("--glue", type=Path, required=True, help="holds SST-2 and CoLA")
    parser.add_argument("--squad", type=Path, required=True, help="SQuAD split by article")
    parser.add_argument("--out", type=Path, required=True, help="where results are kept")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/quality"), help="where runs and predictions are put"
    )
    parser.add_argument("--tasks", nargs="+", metavar="NAME", help="some of the table's lines")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    return command.run("quality", parser, None, _work, "stopped; started again, it goes on")


def _work(arguments: argparse.Namespace) -> None:
    folders = (path.resolve() for path in (arguments.data, arguments.glue, arguments.squad))
    table = tasks(*folders)
    unknown = [name for name in arguments.tasks or () if name not in table]
    if unknown:
        raise UserError(f"unknown --tasks {', '.join(unknown)}; choose of {', '.join(table)}")
    names = arguments.tasks or list(table)
    weights = sorted(Path(arguments.checkpoint).glob("*.safetensors"))
    if not weights:
        raise UserError(
            f"--checkpoint {arguments.checkpoint} holds no *.safetensors; name a Hugging Face "
            "folder that does"
        )
    checkpoint, results = _checksum(*weights), {}
    keys = [(n, side, seed) for n in names for seed in arguments.seeds for side in SIDES]
    data = {name: _checksum(*table[name].files()) for name in names}
    for name in names:
        line = [(side, seed) for side in SIDES for seed in arguments.seeds]
        _check_machines([(side, _path(name, side, seed, arguments)) for side, seed in line])
    for name, side, seed in keys:
        read = {"checkpoint": checkpoint, "data": data[name]}
        done = _result(name, table[name], side, seed, read, arguments)
        results[name, side, seed] = done
        logger.info(f"{name}, {side}, seed {seed}: {done['score']:.4f}, {done['seconds']:.0f} s")
    _print(names, table, arguments.seeds, results)


def _check_machines(files: Sequence[tuple[str, Path]]) -> None:
    """Refuses a line of several machines or library versions before its runs start.

    Args:
        files: the side and the place of every result of the line; missing results will
            be made here.

    Raises:
        UserError: the machines or versions of the results differ or are not known, or they are not
            those of this machine and some results are missing.
    """
    expected: dict[str, Any] = {}
    for side in {side for side, path in files if not path.exists()}:
        expected |= _machine() | _versions(side)
    for path in (path for _, path in files if path.exists()):
        result = json.loads(path.read_text())
        if not {"machine", "versions"} <= result.keys():
            raise UserError(f"{path} names no machine; remove it or choose another --out")
        recorded = result["machine"] | result["versions"]
        kept.check(
            path, recorded, {name: expected.setdefault(name, recorded[name]) for name in recorded}
        )


def _machine() -> dict[str, Any]:
    return {"processor": processor(), "cores": cores()}


def _versions(side: str) -> dict[str, str]:
    """The versions of a side's libraries, which need not be imported here."""
    try:
        return {name: importlib.metadata.version(name) for name in LIBRARIES[side]}
    except importlib.metadata.PackageNotFoundError as error:
        raise UserError(f"{error.name} is not installed; the extra bench has it") from None


def _path(name: str, side: str, seed: int, arguments: argparse.Namespace) -> Path:
    """Where a result is kept."""
    return arguments.out / name.replace(" ", "_") / f"{side}-{seed}.json"


def _result(
    name: str,
    task: QualityTask,
    side: str,
    seed: int,
    read: dict[str, str],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Score, seconds, commit and machine of one run, from an earlier call if there was one.

    Args:
        name: the name of `task`, a line of the table.
        task: what is trained.
        side: one of `SIDES`.
        seed: of its random numbers.
        read: checksums of `checkpoint` and `data`.
        arguments: of the command.

    Raises:
        UserError: there is a result with other settings, or of other files.
    """
    path = _path(name, side, seed, arguments)
    settings = task.settings | read | {"train_rows": task.train_rows, "threads": THREADS}
    settings |= KEEPS_MEMORY
    if side == "bert_tf":
        settings |= AS_TRANSFORMERS | HEAD
    if not path.exists():
        run = _bert_tf if side == "bert_tf" else _transformers
        # Commits are written but not compared: most change nothing here, and a run takes long.
        done = {"settings": settings, "commit": commit() or "unknown"}
        done |= {"machine": _machine(), "versions": _versions(side)}
        done = run(task, seed, arguments.runs / path.parent.name, arguments) | done
        write_text(path, json.dumps(done, indent=1) + "\n")
    found = json.loads(path.read_text())
    kept.check(path, found.get("settings", {}), settings)
    return found


def _checksum(*files: Path) -> str:
    """The checksum of the bytes of some files, one after the other."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _bert_tf(
    task: QualityTask, seed: int, folder: Path, arguments: argparse.Namespace
) -> dict[str, float]:
    run, start = folder / f"run-{seed}", folder / f"start-{seed}"
    job_file = _job(task, task.rows(), seed, folder, arguments)
    _begin(job_file, Path(arguments.checkpoint), start)
    # A stopped run would go on where it was, and its time would be too short.
    shutil.rmtree(run, ignore_errors=True)
    data = task.without_test(folder.resolve() / "data")
    settings = task.overrides(str(start), seed, data)
    took = _timed("bert_tf", "finetune", task.config, "--out", run, "--set", *settings)
    score = json.loads((run / "metrics.json").read_text())[task.metric]
    return {"score": score, **took}


def _transformers(
    task: QualityTask, seed: int, folder: Path, arguments: argparse.Namespace
) -> dict[str, float]:
    rows = task.rows()
    job_file = _job(task, rows, seed, folder, arguments)
    took = _timed("benchmarks.quality.huggingface", job_file)
    predictions = json.loads(_predictions(folder, seed).read_text())["predictions"]
    return {"score": task.score(rows, predictions), **took}


def _predictions(folder: Path, seed: int) -> Path:
    """Where a run of transformers writes what it predicts."""
    return folder / f"predictions-{seed}.json"


def _job(
    task: QualityTask,
    rows: dict[str, Any],
    seed: int,
    folder: Path,
    arguments: argparse.Namespace,
) -> Path:
    """Writes the job file of a transformers run, and the file of rows that the job names."""
    rows_file = folder / "rows.json"
    write_text(rows_file, json.dumps(rows))
    job = task.settings | {
        "checkpoint": arguments.checkpoint,
        "rows": str(rows_file),
        "result": str(_predictions(folder, seed)),
        "seed": seed,
        "threads": THREADS,
    }
    job_file = folder / f"job-{seed}.json"
    write_text(job_file, json.dumps(job))
    return job_file


def _begin(job_file: Path, checkpoint: Path, start: Path) -> None:
    """Writes the checkpoint that a run of transformers starts from, with its tokenizer."""
    _timed("benchmarks.quality.huggingface", job_file, start)
    for file in checkpoint.iterdir():
        if file.name.startswith(("vocab", "tokenizer")):
            shutil.copy(file, start)


def _timed(module: str, *arguments: str | Path) -> dict[str, float]:
    """Runs a module; returns seconds on the clock, and of all processors together."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", module, *arguments], env=environment())
    seconds = time.monotonic() - began
    if done.returncode:
        raise UserError(f"{module} failed, as said above; mend it and start again to go on")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "processor": processor}


def _print(
    names: list[str],
    table: dict[str, QualityTask],
    seeds: list[int],
    results: dict[tuple[str, str, int], dict[str, Any]],
) -> None:
    shown = Table("task", "metric", *SIDES, "difference", "time", "processor time")
    commits = {each["commit"] for (_, side, _), each in results.items() if side == "bert_tf"}
    machines = {"{processor}, {cores} cores".format(**each["machine"]) for each in results.values()}
    shown.caption = f"bert_tf {', '.join(sorted(commits))}; {'; '.join(sorted(machines))}"
    for name in names:
        percent = table[name].percent
        scores = {s: [percent * results[name, s, seed]["score"] for seed in seeds] for s in SIDES}
        differences = [ours - theirs for ours, theirs in zip(*scores.values(), strict=True)]
        shown.add_row(
            name,
            table[name].metric,
            *(_mean_and_error(scores[side]) for side in SIDES),
            _mean_and_error(differences, "+"),
            *(f"{_ratio(name, what, seeds, results):.2f}" for what in ("seconds", "processor")),
        )
    Console(width=100).print(shown)


def _ratio(
    name: str, what: str, seeds: list[int], results: dict[tuple[str, str, int], dict[str, Any]]
) -> float:
    """The peer's median over ours."""
    ours, theirs = (statistics.median(results[name, s, n][what] for n in seeds) for s in SIDES)
    return theirs / ours


def _mean_and_error(values: list[float], sign: str = "") -> str:
    mean = f"{statistics.mean(values):{sign}.1f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {statistics.stdev(values) / len(values) ** 0.5:.1f}"


if __name__ == "__main__":
    sys.exit(main())
