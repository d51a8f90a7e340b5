"""`bert-tf shrink`: a fine-tuned run becomes a small LiteRT file, measured at every stage."""

import dataclasses
import functools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.asking.frozen import FrozenTask
from bert_tf.asking.saved_model import SavedModel
from bert_tf.config.reading import config_of
from bert_tf.config.run import FinetuningRun
from bert_tf.config.yaml_files import Tree
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.export import LITE_PRECISIONS
from bert_tf.export.calibration import rows_of_file
from bert_tf.export.litert.conversion import Row, without_padding
from bert_tf.export.litert.saving import LiteForm, save_lite
from bert_tf.io.atomic import atomic_path, write_text
from bert_tf.report import cores, processor
from bert_tf.report.plots import new_figure, to_png
from bert_tf.runs.finetuning import finetune
from bert_tf.runs.run_folder import CONFIG_FILE, RunFolder
from bert_tf.runs.scoring import trained

# In the folder of the student's run.
FILE, REPORT, PICTURE, RESULTS = "model.tflite", "shrink.md", "shrink.png", "shrink.json"
_TIMED = 50  # rows
Call = Callable[[int], Any]  # computes one of the rows that are measured, by its number


@dataclasses.dataclass(frozen=True)
class Stage:
    """A form of the model on the way from the teacher to the file, measured on the dev data."""

    name: str
    parameters: int
    megabytes: float
    milliseconds: float  # the median time of a row
    score: float  # by the metric that decides


def shrink(
    path: str | os.PathLike,
    out: str | os.PathLike,
    layers: int,
    precision: str = "int8",
    lengths: Sequence[int] | None = None,
    calibration: str | None = None,
    settings: Sequence[str] = (),
) -> list[Stage]:
    """Distils a run to fewer layers, exports the student to LiteRT, and measures every stage."""
    teacher = RunFolder.open(path)
    if not isinstance(teacher.config, FinetuningRun) or teacher.read_metrics() is None:
        raise UserError(
            f"{path} is not a finished fine-tuning run; give a run folder of bert-tf finetune"
        )
    if precision not in LITE_PRECISIONS:
        known = ", ".join(LITE_PRECISIONS)
        raise UserError(f"unknown precision {precision!r}; choose one of {known}")
    config = _student(teacher, layers, settings)
    logger.info(f"== Distilling {path} to {layers} layers")
    finetune(config, out)
    student = RunFolder.open(out)
    logger.info("== Exporting and measuring")
    stages, metric = _measured(teacher, student, precision, lengths, calibration)
    _report(student.path, stages, metric)
    return stages


def _student(teacher: RunFolder[Any], layers: int, settings: Sequence[str]) -> FinetuningRun:
    """The configuration of the student's run: the teacher's data and training, but fewer layers."""
    values = teacher.trained_with.model_dump(mode="json")
    for key, named in teacher.trained_with.train.named.items():
        if named:  # an opened run must not decide what is imported
            logger.warning(f"the student is trained without train.{key} of {teacher.path}")
            del values["train"][key]
    values |= {
        "model": {"num_hidden_layers": layers},
        "init": {},
        "tokenizer": {},
        "distillation": {"teacher": str(teacher.path.absolute())},
    }
    config = config_of(Tree(values, {(): str(teacher.path / CONFIG_FILE)}), settings)
    assert isinstance(config, FinetuningRun)
    return config


def _measured(
    teacher: RunFolder[Any],
    student: RunFolder[Any],
    precision: str,
    lengths: Sequence[int] | None,
    calibration: str | None,
) -> tuple[list[Stage], str]:
    """All stages, and the name of the metric."""
    task, model = trained(student)
    _, large = trained(teacher)
    (dev,) = list(task.files("dev").values())[:1]
    rows = task.read(dev)
    metric = task.best_metric
    signature, asked = asked_of(model, rows, _TIMED)
    ids = ids_of(model, rows, _TIMED)
    parts: dict[str, tuple[int, float, float]] = {}
    calls: dict[str, Call] = {}

    def add(
        name: str, path: Path, answering: Any, compute: Callable[[Any], Any], given: Sequence[Any]
    ) -> None:
        score = task.score(answering, answering.infer(rows), rows)[metric]
        parts[name] = count[name.split()[0]], megabytes(path), score
        calls[name] = lambda row: compute(given[row])

    count = {"teacher,": large.count_params(), "student,": model.count_params()}
    with tempfile.TemporaryDirectory() as scratch:
        for who, each in (("teacher", large), ("student", model)):
            folder = Path(scratch) / who
            each.export(folder, precision="float32")
            ask = functools.partial(SavedModel.load(folder).ask, signature)
            add(f"{who}, SavedModel float32", folder, each, ask, [[row] for row in asked])
        texts = None if calibration is None else rows_of_file(model, calibration)
        forms = {"float32": LiteForm("float32", lengths)}
        forms[precision] = LiteForm(precision, lengths, calibration=texts)
        for kind, form in forms.items():
            file = save_lite(model, Path(scratch) / f"{kind}.tflite", form)
            lite = FrozenTask.load(file)
            network: Any = lite.network
            add(f"student, LiteRT {kind}", file, lite.model, network.run, ids)
        with atomic_path(student.path / FILE, is_file=True) as new:
            Path(new).write_bytes(file.read_bytes())
        taken = milliseconds(calls, min(len(ids), len(asked)))
    stages = [
        Stage(name, parameters, size, taken[name], score)
        for name, (parameters, size, score) in parts.items()
    ]
    return stages, metric


def ids_of(model: Any, rows: Any, most: int) -> list[Row]:
    """The encoder's inputs of rows drawn with a fixed seed, int32 [seq_len] without padding."""
    examples = model.examples(rows)
    count = len(examples.lengths)
    chosen = np.random.default_rng(0).permutation(count)[:most]
    given = examples.take(chosen)[0]
    flat = {name: each.reshape(-1, each.shape[-1]) for name, each in given.items()}
    # A row without tokens fills up a group.
    return [row for row in without_padding(flat) if row["input_mask"].size][:most]


def asked_of(model: Any, rows: Any, most: int) -> tuple[str, list[dict[str, Any]]]:
    """A signature of a model, and the first rows of a file in the form that the signature takes."""
    part = rows.take(range(min(most, len(rows))))
    names = part.names[: len(model.input_names)]  # an embedder takes the first text alone
    signature = "words" if names == ("words",) else "serving_default"
    return signature, [
        dict(zip(model.input_names, row, strict=False)) for row in zip(*part.values, strict=True)
    ]


def milliseconds(calls: Mapping[str, Call], rows: int, rounds: int = 5) -> dict[str, float]:
    """The median time of a row by each call; the calls take turns, after a first round."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            for row in range(rows):
                began = time.perf_counter()
                call(row)
                if number:  # the first round warms up
                    seconds[name].append(time.perf_counter() - began)
    return {name: 1e3 * statistics.median(each) for name, each in seconds.items()}


def megabytes(path: Path) -> float:
    """The size of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files) / 1e6


def _report(folder: Path, stages: Sequence[Stage], metric: str) -> None:
    """Writes the table, its numbers and the picture, and logs the table."""
    first = stages[0]
    lines = [
        f"| stage | parameters | MB | ms per row | {metric} | % of the teacher |",
        "|---|---|---|---|---|---|",
    ]
    for each in stages:
        kept = f"{each.score / first.score:.1%}" if first.score else ""
        lines.append(
            f"| {each.name} | {each.parameters:,} | {each.megabytes:.1f} | "
            f"{each.milliseconds:.2f} | {each.score:.4f} | {kept} |"
        )
    table = "\n".join(lines)
    machine = (
        f"{processor()}, {cores()} cores; one row of the dev data at a time. The SavedModel takes "
        "strings and tokenizes them; the LiteRT file takes ids."
    )
    write_text(folder / REPORT, f"# {folder.name}\n\n{table}\n\n{machine}\n\n![]({PICTURE})\n")
    results = {
        "metric": metric,
        "processor": processor(),
        "cores": cores(),
        "stages": [dataclasses.asdict(each) for each in stages],
    }
    write_text(folder / RESULTS, json.dumps(results, indent=2) + "\n")
    try:
        _draw(folder / PICTURE, stages, metric)
    except UserError as error:  # matplotlib is an extra
        logger.warning(f"{folder / PICTURE} was not drawn: {error}")
    logger.info(f"{table}\ntable: {folder / REPORT}; model: {folder / FILE}")


def _draw(path: Path, stages: Sequence[Stage], metric: str) -> None:
    """The metric over the time and over the size."""
    figure, panels = new_figure(1, 2, figsize=(10, 4), sharey=True)
    for panel, axis in zip(panels, ("milliseconds", "megabytes"), strict=True):
        for each in stages:
            panel.scatter(getattr(each, axis), each.score, label=each.name)
        panel.set_xscale("log")
        panel.set_xlabel(f"{axis} ({'a row' if axis == 'milliseconds' else 'on disk'})")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel(metric)
    panels[0].legend(fontsize=8)
    with atomic_path(path, is_file=True) as new:
        Path(new).write_bytes(to_png(figure))
