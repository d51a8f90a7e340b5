"""The paper's table 1 as a whole: the tasks of GLUE side by side, with their average."""

import statistics
from collections.abc import Mapping, Sequence

from bert_tf.report.notes import training_parts
from bert_tf.report.page import Row, Section
from bert_tf.report.paper import BENCHMARKS
from bert_tf.report.runs import RunFacts

# Heading -> key of the benchmark and metric, in the paper's order.
_COLUMNS = {
    "MNLI-m": ("mnli", "accuracy"),
    "MNLI-mm": ("mnli", "accuracy_mismatched"),
    "QQP": ("qqp", "f1"),
    "QNLI": ("qnli", "accuracy"),
    "SST-2": ("sst2", "accuracy"),
    "CoLA": ("cola", "mcc"),
    "STS-B": ("stsb", "spearman"),
    "MRPC": ("mrpc", "f1"),
    "RTE": ("rte", "accuracy"),
}


def glue_sections(facts: Sequence[RunFacts]) -> list[Section]:
    """The table, a line for each checkpoint that runs started from, where there are two tasks.

    Of several runs on one task the last is shown.
    """
    starts: dict[str | None, dict[str, RunFacts]] = {}
    for each in facts:
        for heading, (name, metric) in _COLUMNS.items():
            if each.benchmark == BENCHMARKS[name] and each.value(metric) is not None:
                starts.setdefault(each.config.init.checkpoint, {})[heading] = each
    if len({_COLUMNS[heading][0] for known in starts.values() for heading in known}) < 2:
        return []
    papers: dict[str, dict[str, float]] = {}
    for heading, (name, metric) in _COLUMNS.items():
        for result in BENCHMARKS[name].results:
            papers.setdefault(result.model, {})[heading] = result.values[metric]
    rows = [Row((f"paper, {model} (test)", *_cells(papers[model])), True) for model in papers]
    names = {each.config.init.checkpoint: f"{each.start} (dev)" for each in facts}
    for start, known in starts.items():
        values = {heading: each.value(_COLUMNS[heading][1]) for heading, each in known.items()}
        rows.append(Row((names[start], *_cells(values))))
    note = "MRPC and QQP: F1; STS-B: Spearman's, CoLA: Matthews' correlation; else accuracy."
    # MNLI's runs are shown twice.
    shown = {id(each): each for known in starts.values() for each in known.values()}
    parts = training_parts(list(shown.values()))
    return [Section("GLUE (table 1)", ("", *_COLUMNS, "average"), tuple(rows), (note, *parts))]


def _cells(known: Mapping[str, float]) -> list[str]:
    """The values under their headings, and the average of all if none is missing."""
    values = [known.get(heading) for heading in _COLUMNS]
    average = statistics.fmean(values) if None not in values else None
    return ["" if value is None else f"{value:.1f}" for value in (*values, average)]
