"""The paper's table 1 as a whole: the tasks of GLUE side by side, with their average."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bert_tf.report.naming import distinct_names
from bert_tf.report.page import Row, Section
from bert_tf.report.paper import BENCHMARKS
from bert_tf.report.runs import RunFacts, training_parts

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


class _Start(NamedTuple):
    """What a run started from.

    Attributes:
        checkpoint: where it is; None for random weights.
        model: its sizes.
    """

    checkpoint: str | None
    model: str


def glue_sections(facts: Sequence[RunFacts]) -> list[Section]:
    """The table, a line for each model that runs started from, where there are two tasks.

    Of several runs on one task the last is shown.
    """
    starts: dict[_Start, dict[str, RunFacts]] = {}
    for each in facts:
        for heading, (name, metric) in _COLUMNS.items():
            if each.benchmark == BENCHMARKS[name] and each.value(metric) is not None:
                starts.setdefault(_start(each), {})[heading] = each
    if len({_COLUMNS[heading][0] for known in starts.values() for heading in known}) < 2:
        return []
    papers: dict[str, dict[str, float]] = {}
    for heading, (name, metric) in _COLUMNS.items():
        for result in BENCHMARKS[name].results:
            papers.setdefault(result.model, {})[heading] = result.values[metric]
    rows = [Row((f"paper, {model} (test)", *_cells(papers[model])), True) for model in papers]
    for name, known in zip(_names(list(starts)), starts.values(), strict=True):
        values = {heading: each.value(_COLUMNS[heading][1]) for heading, each in known.items()}
        rows.append(Row((f"{name} (dev)", *_cells(values))))
    note = "F1 for MRPC and QQP, Spearman correlation for STS-B, Matthews correlation for CoLA, "
    "accuracy for the others."
    # MNLI's runs are shown twice.
    shown = {id(each): each for known in starts.values() for each in known.values()}
    parts = training_parts(list(shown.values()))
    return [Section("GLUE (table 1)", ("", *_COLUMNS, "average"), tuple(rows), (note, *parts))]


def _start(facts: RunFacts) -> _Start:
    sizes = facts.encoder
    return _Start(
        facts.config.source,
        f"{sizes.num_hidden_layers} x {sizes.hidden_size}" + " + BiLSTM" * bool(sizes.bilstm),
    )


def _names(starts: Sequence[_Start]) -> list[str]:
    """What distinguishes each: its checkpoint, and the model where that is not enough."""
    checkpoints = [each.checkpoint for each in starts if each.checkpoint]
    names = dict(zip(checkpoints, distinct_names(checkpoints), strict=True)) | {None: "random"}
    count = Counter(each.checkpoint for each in starts)
    return [
        names[each.checkpoint] + f", {each.model}" * (count[each.checkpoint] > 1) for each in starts
    ]


def _cells(known: Mapping[str, float | None]) -> list[str]:
    """The values under their headings, and the average of all if none is missing."""
    values = [known.get(heading) for heading in _COLUMNS]
    there = [value for value in values if value is not None]
    average = statistics.fmean(there) if len(there) == len(values) else None
    return ["" if value is None else f"{value:.1f}" for value in (*values, average)]
