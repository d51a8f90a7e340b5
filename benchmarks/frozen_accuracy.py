"""How much accuracy exports in other precisions lose: dev data of finished runs, as strings.

    python -m benchmarks.frozen_accuracy RUN [RUN …]

For runs of any task but pre-training, on the dev data that they were evaluated on; for MNLI, on
the matched part. Each run is exported plain and frozen, in float32 and bfloat16, by a process of
its own, as TensorFlow does not give back the memory of what it has loaded. The metric is the one
that selects the best of several such runs, in percent, next to that of the run's `metrics.json`.
"""

import argparse
import concurrent.futures
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table

from bert_tf.cli import command
from bert_tf.config.run import FinetuningRun
from bert_tf.data.columns import Columns
from bert_tf.errors import UserError
from bert_tf.export.run import export_run
from bert_tf.runs.run_folder import RunFolder
from bert_tf.runs.scoring import trained
from bert_tf.tasks.question_answering.metrics import answer_metrics, answer_or_none_metrics
from bert_tf.tasks.question_answering.squad import given_texts
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_model import TaskModel
from bert_tf.tasks.token_classification.tagged_sentences import texts_of

# Heading -> how it is exported.
EXPORTS = {
    "float32": {},
    "bfloat16": {"precision": "bfloat16"},
    "frozen float32": {"freeze": True},
    "frozen bfloat16": {"freeze": True, "precision": "bfloat16"},
}
_BATCH = 32
# The name of an export's input -> a value for every row: a text, or a list of texts.
Inputs = dict[str, list]
# An export's output for each batch.
Outputs = list[np.ndarray]


class Asked(NamedTuple):
    """How to query the exports of a task.

    Attributes:
        signature: its name.
        output: name of the output that is scored.
        inputs: gives the inputs, from a task, one of its files, and the rows read from the file.
        score: gives the metrics of the outputs, from the task, its model, the rows and the outputs.
    """

    signature: str
    output: str
    inputs: Callable[[Task, Path, Any], Inputs]
    score: Callable[[Task, TaskModel, Any, Outputs], dict[str, float]]


def main() -> int:
    """Prints a row for each run; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.frozen_accuracy", __doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    return command.run("frozen_accuracy", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    table = Table("run", "metric", "rows", "evaluate", *EXPORTS)
    for path in arguments.runs:
        table.add_row(*_compare(path))
    Console(width=110).print(table)


def _compare(path: Path) -> list[str]:
    run = RunFolder.open(path)
    if not isinstance(run.config, FinetuningRun):
        raise UserError(f"{path} is a {run.config.task} run; name a fine-tuned one")
    metrics = run.read_metrics()
    if metrics is None:
        raise UserError(f"{path} has no metrics.json yet; let the run finish, or leave it out")
    task, model = trained(run)
    asked, file = ASKED[run.config.task], next(iter(task.files("dev").values()))
    dev = task.read(file)
    inputs = asked.inputs(task, file, dev)
    # SQuAD's metrics are in percent already.
    scale = 1 if run.config.task == "question_answering" else 100
    scores = []
    with concurrent.futures.ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as processes:
        for options in EXPORTS.values():
            given = path, options, asked.signature, asked.output, inputs
            outputs = processes.submit(answers, *given).result()
            scores.append(asked.score(task, model, dev, outputs)[task.best_metric])
    rows = len(next(iter(inputs.values())))
    shown = [f"{scale * score:.2f}" for score in (metrics[task.best_metric], *scores)]
    return [path.name, task.best_metric, f"{rows}", *shown]


def answers(
    path: Path, options: dict[str, Any], signature: str, output: str, inputs: Inputs
) -> Outputs:
    """The outputs of an export of the run at `path`; see `Asked` and `export_run`."""
    rows = len(next(iter(inputs.values())))
    with tempfile.TemporaryDirectory() as folder:
        saved = export_run(path, Path(folder) / "model", **options)
        model = tf.saved_model.load(str(saved))
        ask = model.signatures[signature]
        batches = (slice(start, start + _BATCH) for start in range(0, rows, _BATCH))
        return [
            ask(**{name: _tensor(values[batch]) for name, values in inputs.items()})[output].numpy()
            for batch in batches
        ]


def _tensor(values: Sequence[str] | Sequence[list[str]]) -> tf.Tensor:
    """string [batch], or [batch, longest], padded with ""."""
    if isinstance(values[0], str):
        return tf.constant(values)
    return tf.ragged.constant(values).to_tensor("")


def _columns(task: Task, file: Path, dev: Columns) -> Inputs:
    return {name: list(values) for name, values in zip(dev.names, dev.values, strict=True)}


def _words(task: Task, file: Path, dev: Columns) -> Inputs:
    return {"words": texts_of(dev)}


def _predictions_score(
    task: Task, model: TaskModel, dev: Any, outputs: Outputs
) -> dict[str, float]:
    """The metrics of numbers or of probabilities; these have the arg max of the logits."""
    return task.score(model, np.concatenate(outputs), dev)


def _labels_score(task: Task, model: TaskModel, dev: Columns, outputs: Outputs) -> dict[str, float]:
    """The metrics of the labels of words; each output is bytes [batch, longest]."""
    rows = [row for batch in outputs for row in batch]
    labels = [
        task.labels.index(label.decode())
        for row, words in zip(rows, texts_of(dev), strict=True)
        for label in row[: len(words)]
    ]
    return task.score(model, np.eye(len(task.labels), dtype=np.float32)[labels], dev)


def _answers_score(
    task: Task, model: TaskModel, dev: Columns, outputs: Outputs
) -> dict[str, float]:
    texts = [text.decode() for batch in outputs for text in batch]
    given = given_texts(dev)
    by_id = dict(zip(given, texts, strict=True))
    if not task.data.unanswerable:
        return answer_metrics(given, by_id)
    # Other thresholds are not scored: they need the odds, which exports do not give.
    return answer_or_none_metrics(given, by_id, by_id, dict.fromkeys(by_id, 0.0))


ASKED = {
    "classification": Asked("serving_default", "probabilities", _columns, _predictions_score),
    "regression": Asked("serving_default", "score", _columns, _predictions_score),
    "multiple_choice": Asked("serving_default", "probabilities", _columns, _predictions_score),
    "token_classification": Asked("words", "labels", _words, _labels_score),
    "question_answering": Asked("serving_default", "answer", _columns, _answers_score),
}

if __name__ == "__main__":
    sys.exit(main())
