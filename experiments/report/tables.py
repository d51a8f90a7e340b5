"""The tables of runs below the paper's figures: one for each benchmark, and one for all of GLUE."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.experiments.report.facts import RunFacts
from bert_tf.experiments.report.page import ReportRow, ReportSection
from bert_tf.experiments.report.paper import BENCHMARKS, distinct_names
from bert_tf.experiments.report.pictures import draw_curves

# The curves that are drawn if a run logged them.
_CURVES = ("loss", "masked_lm_accuracy", "next_sentence_accuracy")
# Table 1: heading -> key of the benchmark and metric, in the paper's order.
_GLUE = {
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


def _size(facts: RunFacts) -> str:
    layers, width, _ = facts.size
    return f"{layers} x {width}"


def _length(facts: RunFacts) -> str:
    train = facts.config.train
    if train.steps:
        length = f"{train.steps} steps"
    else:
        length = "1 epoch" if train.epochs == 1 else f"{train.epochs:g} epochs"
    if facts.train_rows is None:
        return length
    return f"{length} {'on' if train.steps else 'of'} {facts.train_rows:,} rows"


# The columns for the settings of a run.
_SETTINGS = {
    "layers x width": _size,
    "started from": lambda facts: facts.start,
    "training": _length,
    "batch": lambda facts: str(facts.config.train.batch_size),
    "seeds": lambda facts: str(facts.seeds),
}


def benchmark_section(facts: Sequence[RunFacts]) -> ReportSection:
    """The table of the paper's figures and of these runs, all on one benchmark, and the curves."""
    benchmark = facts[0].benchmark
    metrics = [m for m in benchmark.metrics if any(m in each.metrics for each in facts)]
    elsewhere = f" on {benchmark.stands_for}" if benchmark.stands_for else ""
    no_settings = [""] * len(_SETTINGS)
    rows = []
    for model, split, values in benchmark.results:
        name = f"paper, {model}{elsewhere} ({split})"
        rows.append(ReportRow((name, *cells(values, metrics), *no_settings), quoted=True))
    for each in facts:
        settings = [text_of(each) for text_of in _SETTINGS.values()]
        rows.append(ReportRow((each.name, *map(each.shown, metrics), *settings)))
        if each.ensemble is not None:
            together = cells(each.ensemble, metrics)
            rows.append(ReportRow((f"{each.name}, ensemble", *together, *settings)))
    notes = []
    if benchmark.source:
        other = f", measured on {benchmark.stands_for}, not on our data" if elsewhere else ""
        notes.append(f"The paper's figures come from its {benchmark.source}{other}.")
    notes += training_parts(facts) + _language_models(facts)
    drawn = [
        metric
        for metric in dict.fromkeys((*_CURVES, *metrics))
        if any(metric in curves for each in facts for curves in each.curves.values())
    ]
    picture = draw_curves([(each.name, each.curves) for each in facts], drawn) if drawn else None
    columns = ("", *metrics, *_SETTINGS)
    return ReportSection(benchmark.heading, columns, tuple(rows), tuple(notes), picture)


def glue_sections(facts: Sequence[RunFacts]) -> list[ReportSection]:
    """The paper's table 1, if there are two tasks: a row for each model that runs started from.

    The last of several runs on one task is shown.
    """
    # (checkpoint, sizes) -> heading -> run.
    starts: dict[tuple[str | None, str], dict[str, RunFacts]] = {}
    for each in facts:
        start = each.config.source, _size(each) + " + BiLSTM" * bool(each.encoder.bilstm)
        for heading, (name, metric) in _GLUE.items():
            if each.benchmark == BENCHMARKS[name] and each.value(metric) is not None:
                starts.setdefault(start, {})[heading] = each
    if len({_GLUE[heading][0] for known in starts.values() for heading in known}) < 2:
        return []
    papers: dict[str, dict[str, float]] = {}
    for heading, (name, metric) in _GLUE.items():
        for model, _, figures in BENCHMARKS[name].results:
            papers.setdefault(model, {})[heading] = figures[metric]
    rows = [
        ReportRow((f"paper, {model} (test)", *_glue_cells(papers[model])), True) for model in papers
    ]
    for name, known in zip(_start_names(list(starts)), starts.values(), strict=True):
        values = {heading: each.value(_GLUE[heading][1]) for heading, each in known.items()}
        rows.append(ReportRow((f"{name} (dev)", *_glue_cells(values))))
    note = (
        "F1 for MRPC and QQP, Spearman correlation for STS-B, Matthews correlation for CoLA, "
        "accuracy for the others."
    )
    # A run on MNLI has two columns.
    shown = {id(each): each for known in starts.values() for each in known.values()}
    notes = (note, *training_parts(list(shown.values())))
    return [ReportSection("GLUE (table 1)", ("", *_GLUE, "average"), tuple(rows), notes)]


def _start_names(starts: Sequence[tuple[str | None, str]]) -> list[str]:
    """What distinguishes each: its checkpoint, and the sizes where that is not enough."""
    checkpoints = [checkpoint for checkpoint, _ in starts if checkpoint]
    names = dict(zip(checkpoints, distinct_names(checkpoints), strict=True)) | {None: "random"}
    count = Counter(checkpoint for checkpoint, _ in starts)
    return [
        names[checkpoint] + f", {sizes}" * (count[checkpoint] > 1) for checkpoint, sizes in starts
    ]


def _glue_cells(known: Mapping[str, float | None]) -> list[str]:
    """The values under their headings, and the average of all if none is missing."""
    values = [value for heading in _GLUE if (value := known.get(heading)) is not None]
    average = {"average": statistics.fmean(values)} if len(values) == len(_GLUE) else {}
    return cells({**known, **average}, [*_GLUE, "average"])


def cells(values: Mapping[Any, float | None], columns: Sequence[Any]) -> list[str]:
    """The values with one decimal, empty where there is none."""
    found = (values.get(column) for column in columns)
    return ["" if value is None else f"{value:.1f}" for value in found]


def training_parts(facts: Sequence[RunFacts]) -> list[str]:
    """Notes on the runs that trained only on the first rows of their data; the paper used all."""
    parts: dict[tuple[str, int], list[str]] = {}
    for each in facts:
        if each.train_rows is not None:
            parts.setdefault((each.benchmark.title, each.train_rows), []).append(each.name)
    return [
        f"{title}: these were trained on the first {rows:,} rows only: {', '.join(names)}."
        for (title, rows), names in parts.items()
    ]


def _language_models(facts: Sequence[RunFacts]) -> list[str]:
    """A note on pre-trainings that are not masked language models, though their metrics say so."""
    one_way = [
        each.name
        for each in facts
        if each.config.task == "pretraining" and each.encoder.attention != "bidirectional"
    ]
    if not one_way:
        return []
    return [
        "A masked language model predicts the masked tokens from both sides; a model that reads "
        "in one direction predicts every token from one side. Their masked_lm_accuracy and "
        "perplexity are therefore not comparable. Models that read in one direction: "
        f"{', '.join(one_way)}."
    ]
