"""`bert-tf report`: runs side by side, compared with the paper's figures."""

import dataclasses
import datetime
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

import bert_tf
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.experiments.report.ablations import find_ablations
from bert_tf.experiments.report.comparison import comparison
from bert_tf.experiments.report.facts import RunFacts
from bert_tf.experiments.report.page import ReportSection, picture_name, to_html, to_markdown
from bert_tf.experiments.report.paper import distinct_benchmarks, distinct_names
from bert_tf.experiments.report.tables import benchmark_section, glue_sections
from bert_tf.io.atomic import atomic_path, write_text
from bert_tf.io.remote import exists, is_file, local_path
from bert_tf.report import commit, cores, processor
from bert_tf.runs.run_folder import CONFIG_FILE, METRICS_FILE

_TITLE = "Results"


def report(
    runs: Sequence[str | os.PathLike],
    out: str | os.PathLike,
    stand_ins: Mapping[Any, str] | None = None,
) -> None:
    """Writes a page on finished runs: a table for each benchmark, and the curves of training.

    Runs that differ in their pre-training, their size or the activations they read are compared as
    in the paper's tables 5, 6 and 7 and its figure 4. Results over several seeds are mean ±
    standard deviation. Two runs of one task are also compared row by row. Everything is on dev data
    unless the table says otherwise.

    Args:
        runs: run folders. Other folders, and those of runs that have not finished or are damaged,
            are left out with a warning, so `runs/*` may be given.
        out: the page. NAME.html is one file; NAME.md has its pictures in the folder NAME next to
            it. Nothing is deleted from that folder: it may be the folder of the runs.
        stand_ins: for runs on data in place of the paper's, the key of the paper's data in
            `bert_tf.experiments.report.paper.BENCHMARKS`. The paper's figures are then shown with a
            note that they were measured on other data.

    Raises:
        UserError: a folder does not exist, none holds a finished run, or `out` has another ending
            or cannot be written.
    """
    out = Path(out)
    if out.suffix not in (".md", ".html"):
        raise UserError(f"--out {out} must end in .md or .html")
    read = _read(runs, stand_ins or {})
    benchmarks = distinct_benchmarks([(each.benchmark, each.config) for each in read.values()])
    facts = [
        dataclasses.replace(each, name=name, benchmark=benchmark)
        for each, name, benchmark in zip(
            read.values(), distinct_names([*read]), benchmarks, strict=True
        )
    ]
    sections = _sections(facts)
    if len(facts) == 2 and (section := comparison([*read], facts)):
        sections.append(section)
    if out.suffix == ".html":
        write_text(out, to_html(_TITLE, _intro(), sections))
    else:
        pictures = out.with_suffix("")
        for number, section in enumerate(sections):
            if section.picture:
                with atomic_path(pictures / picture_name(number)) as new:
                    new.write_bytes(section.picture)
        write_text(out, to_markdown(_TITLE, _intro(), sections, pictures.name))
    logger.info(f"{out}: {len(facts)} runs, {len(sections)} tables")


def _read(
    runs: Sequence[str | os.PathLike], stand_ins: Mapping[Any, str]
) -> dict[str | os.PathLike, RunFacts]:
    """The facts of the runs that can be reported; warns about the others."""
    facts = {}
    for run in runs:
        # Path.exists raises an error for a name that is too long.
        if not exists(run):
            raise UserError(f"run folder not found: {run}")
        files = (CONFIG_FILE, METRICS_FILE)
        missing = [name for name in files if not is_file(local_path(run) / name)]
        if missing:
            logger.warning(
                f"{run} is skipped: it is not the folder of a finished run; it has no {missing[0]}"
            )
            continue
        try:
            facts[run] = RunFacts.read(run, stand_ins.get(run))
        except UserError as error:
            logger.warning(f"{run} is skipped: {error}")
    if not facts:
        raise UserError(
            "none of the folders holds a finished run; give the folders of finished runs"
        )
    return facts


def _sections(facts: Sequence[RunFacts]) -> list[ReportSection]:
    """GLUE, a section for each benchmark in the order of the runs, and the ablations."""
    ablations = find_ablations(facts)
    shown = [each for _, runs in ablations for each in runs]
    others = [each for each in facts if not any(each is one for one in shown)]
    sections = [
        benchmark_section([each for each in others if each.benchmark.heading == heading])
        for heading in dict.fromkeys(each.benchmark.heading for each in others)
    ]
    return [*glue_sections(others), *sections, *(section for section, _ in ablations)]


def _intro() -> list[str]:
    running = commit()
    checkout = f" ({running})" if running else ""
    versions = (
        f"bert_tf {bert_tf.__version__}{checkout}, TensorFlow {tf.__version__}, Keras "
        f"{keras.__version__}, Python {platform.python_version()}"
    )
    here = f"{processor()}, {cores()} cores"
    today = datetime.date.today().isoformat()
    return [
        f"Written on {today} by bert-tf report: {versions}; {here}.",
        "Metrics are percentages, measured on dev data; for several seeds, mean ± standard "
        "deviation.",
    ]
