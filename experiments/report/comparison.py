"""Two runs on the same dev data: whether their difference is more than noise."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from bert_tf.config.run import FinetuningRun
from bert_tf.console import logger
from bert_tf.data.columns import Columns, Target
from bert_tf.errors import UserError
from bert_tf.experiments.report.facts import RunFacts
from bert_tf.experiments.report.page import ReportRow, ReportSection
from bert_tf.runs.run_folder import RunFolder
from bert_tf.runs.scoring import trained
from bert_tf.tasks.uncertainty import bootstrap, intervals


def comparison(paths: Sequence[Any], facts: Sequence[RunFacts]) -> ReportSection | None:
    """The metrics of two runs and tests of their differences; None if they cannot be compared.

    The p-value of a metric is from a paired bootstrap: both models are scored on the same samples
    of the rows. For classes, McNemar's exact test (1947) takes the rows that only one model has
    right. It tests whether each of these rows is as likely to be the first model's as the second's.
    """
    tasks = {each.config.task for each in facts}
    if len(tasks) > 1 or not isinstance(facts[0].config, FinetuningRun):
        return None
    try:
        return _compared(paths, facts)
    except UserError as error:
        logger.warning(f"the runs are not compared row by row: {error}")
        return None


def _compared(paths: Sequence[Any], facts: Sequence[RunFacts]) -> ReportSection:
    runs = [trained(RunFolder.open(path)) for path in paths]
    data = [task.read(next(iter(task.files("dev").values()))) for task, _ in runs]
    if _keys(data[0]) != _keys(data[1]):
        raise UserError("their dev data differ; evaluate both on the same file")
    rows, scores, samples, right = data[0], [], [], []
    for task, model in runs:
        found = model.infer(rows)
        scores.append(task.score(model, found, rows))
        samples.append(bootstrap(task.score, model, found, rows))
        if model.predicts == "classes":
            right.append(found.argmax(axis=1) == cast(Target, model.target).numbers(rows))
    differences = {name: samples[1][name] - samples[0][name] for name in samples[0]}
    ends, table, notes = intervals(differences, 0.95), [], []
    for name, values in differences.items():
        scale = facts[0].scale(name)
        cells = [f"{scale * each[name]:.2f}" for each in scores]
        cells.append(f"{scale * (scores[1][name] - scores[0][name]):+.2f}")
        cells.append(
            " to ".join(f"{scale * ends[f'{name}_{end}']:+.2f}" for end in ("low", "high"))
        )
        # Two-sided; the observed rows count as one more sample.
        least = min((values <= 0).sum(), (values >= 0).sum())
        p = min(1.0, 2 * (least + 1) / (len(values) + 1))
        table.append(ReportRow((name, *cells, f"{p:.3f}")))
        if name == runs[0][0].best_metric:
            said = f"{cells[2]} ({cells[3]}), is {'' if p < 0.05 else 'not '}more than noise"
            notes.append(f"The difference of {name}, {said} (p = {p:.3f}, {len(rows)} rows).")
    if right:
        notes.append(mcnemar(*right))
    names = (each.name for each in facts)
    columns = ("", *names, "difference", "95 % interval", "p (bootstrap)")
    return ReportSection("Comparison", columns, tuple(table), tuple(notes))


def _keys(rows: Columns) -> list[str]:
    """Keys that are equal for the same rows in any order."""
    return sorted(map(repr, zip(*rows.values, rows.targets or rows.values[0], strict=True)))


def mcnemar(first: np.ndarray, second: np.ndarray) -> str:
    """A sentence with McNemar's exact test; both arguments are bool [rows]: which are right.

    >>> mcnemar(np.array([True] * 9 + [False]), np.array([False] * 9 + [True]))
    "McNemar's exact test: 9 rows are right in the first run alone, 1 in the second; p = 0.021."
    """
    from scipy import stats

    own = int((first & ~second).sum()), int((second & ~first).sum())
    p = stats.binomtest(own[0], sum(own)).pvalue if sum(own) else 1.0
    only = f"{own[0]} rows are right in the first run alone, {own[1]} in the second"
    return f"McNemar's exact test: {only}; p = {p:.3f}."
