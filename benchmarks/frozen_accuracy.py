"""What exports in other precisions cost in accuracy: dev data of finished runs, asked as strings.

    python -m benchmarks.frozen_accuracy RUN [RUN …]

For classification (GLUE's formats but MNLI), multiple choice, token classification and question
answering. Each run is exported plain and frozen, in float32 and bfloat16, by a process of its own,
as TensorFlow does not give back the memory of what it has loaded. The metric is the one that tells
the best of several such runs, in percent, beside that of the run's `metrics.json`.
"""

import argparse
import concurrent.futures
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from rich.console import Console
from rich.table import Table

from benchmarks.quality.tasks import QualityTask
from bert_tf.tasks import TASKS
from bert_tf.training.run_folder import RunFolder
from export.run import export_run

# Heading -> how it is exported.
EXPORTS = {
    "float32": {},
    "bfloat16": {"precision": "bfloat16"},
    "frozen float32": {"freeze": True},
    "frozen bfloat16": {"freeze": True, "precision": "bfloat16"},
}
_BATCH = 32
Rows = list[dict[str, Any]]


def main() -> None:
    """Prints a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    table = Table("run", "metric", "rows", "evaluate", *EXPORTS)
    for path in parser.parse_args().runs:
        table.add_row(*_compare(path))
    Console(width=110).print(table)


def _compare(path: Path) -> list[str]:
    run = RunFolder.open(path)
    metrics = run.read_metrics()
    metric = TASKS[run.config.task].best_metric_of(run.config)
    task = QualityTask(str(path / "config.yaml"), Path(run.config.data.path), metric, {})
    rows = task.rows()
    scale = 1 if rows["family"] == "question_answering" else 100
    scores = []
    with concurrent.futures.ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as processes:
        for options in EXPORTS.values():
            predictions = processes.submit(_ask, path, options, rows).result()
            scores.append(f"{scale * task.score(rows, predictions):.2f}")
    return [path.name, metric, str(len(rows["dev"])), f"{scale * metrics[metric]:.2f}", *scores]


def _ask(path: Path, options: dict[str, Any], rows: dict[str, Any]) -> Any:
    """What an export of the run answers."""
    with tempfile.TemporaryDirectory() as folder:
        saved = export_run(path, Path(folder) / "model", **options)
        return _ASK[rows["family"]](tf.saved_model.load(str(saved)), rows)


def _batches(rows: Rows) -> Iterator[Rows]:
    for start in range(0, len(rows), _BATCH):
        yield rows[start : start + _BATCH]


def _labels(model: Any, rows: dict[str, Any]) -> list[int]:
    ask = model.signatures["serving_default"]
    single = len(rows["dev"][0]["texts"]) == 1
    names = ("text",) if single else ("text_a", "text_b")
    found: list[int] = []
    for batch in _batches(rows["dev"]):
        columns = zip(*(row["texts"] for row in batch), strict=True)
        answer = ask(**dict(zip(names, map(tf.constant, columns), strict=True)))
        found += [rows["labels"].index(label.decode()) for label in answer["label"].numpy()]
    return found


def _choices(model: Any, rows: dict[str, Any]) -> list[int]:
    ask = model.signatures["serving_default"]
    found: list[int] = []
    for batch in _batches(rows["dev"]):
        contexts = tf.constant([row["context"] for row in batch])
        choices = tf.constant([row["choices"] for row in batch])
        found += ask(context=contexts, choices=choices)["choice"].numpy().tolist()
    return found


def _tags(model: Any, rows: dict[str, Any]) -> list[list[int]]:
    ask = model.signatures["words"]
    found = []
    for batch in _batches(rows["dev"]):
        words = tf.ragged.constant([row["words"] for row in batch]).to_tensor("")
        for labels, row in zip(ask(words=words)["labels"].numpy(), batch, strict=True):
            own = labels[: len(row["words"])]
            found.append([rows["labels"].index(label.decode()) for label in own])
    return found


def _answers(model: Any, rows: dict[str, Any]) -> dict[str, str]:
    ask = model.signatures["serving_default"]
    found = {}
    for batch in _batches(rows["dev"]):
        questions = tf.constant([row["question"] for row in batch])
        contexts = tf.constant([row["context"] for row in batch])
        answers = ask(question=questions, context=contexts)["answer"].numpy()
        found |= {row["id"]: a.decode() for row, a in zip(batch, answers, strict=True)}
    return found


_ASK: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "classification": _labels,
    "multiple_choice": _choices,
    "token_classification": _tags,
    "question_answering": _answers,
}

if __name__ == "__main__":
    main()
