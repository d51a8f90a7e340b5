"""The paper's ablations, made of runs that differ in one thing: tables 5, 6 and 7, and figure 4.

Runs belong together by their sizes, by the pre-training that they started from, and by the
activations that they read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf.experiments.report import facts as of
from bert_tf.experiments.report.facts import RunFacts
from bert_tf.experiments.report.page import ReportRow, ReportSection
from bert_tf.experiments.report.paper import distinct_names
from bert_tf.experiments.report.pictures import Line, draw_lines
from bert_tf.experiments.report.tables import cells, training_parts


class PaperColumn(NamedTuple):
    """A benchmark in a table of an ablation."""

    title: str
    metric: str

    @property
    def heading(self) -> str:
        """The heading of the column."""
        return f"{self.title.removeprefix('GLUE: ')} ({self.metric})"


_MNLI, _QNLI = PaperColumn("GLUE: MNLI", "accuracy"), PaperColumn("GLUE: QNLI", "accuracy")
_MRPC, _SST2 = PaperColumn("GLUE: MRPC", "accuracy"), PaperColumn("GLUE: SST-2", "accuracy")
_SQUAD = PaperColumn("SQuAD v1.1", "f1")

_TABLE_5_COLUMNS = (_MNLI, _QNLI, _MRPC, _SST2, _SQUAD)
_TABLE_5 = {
    name: dict(zip(_TABLE_5_COLUMNS, values, strict=True))
    for name, values in {
        of.BERT: (84.4, 88.4, 86.7, 92.7, 88.5),
        of.NO_NSP: (83.9, 84.9, 86.5, 92.6, 87.9),
        of.LEFT_TO_RIGHT: (82.1, 84.3, 77.5, 92.1, 77.8),
        of.LEFT_TO_RIGHT + of.BILSTM: (82.1, 84.1, 75.7, 91.6, 84.9),
    }.items()
}
_TABLE_6_COLUMNS = (_MNLI, _MRPC, _SST2)
# layers, width, heads -> perplexity, then the tasks.
_TABLE_6 = {
    (3, 768, 12): (5.84, 77.9, 79.8, 88.4),
    (6, 768, 3): (5.24, 80.6, 82.2, 90.7),
    (6, 768, 12): (4.68, 81.9, 84.8, 91.3),
    (12, 768, 12): (3.99, 84.4, 86.7, 92.9),
    (12, 1024, 16): (3.54, 85.7, 86.9, 93.3),
    (24, 1024, 16): (3.23, 86.6, 87.8, 93.7),
}
# Activations -> F1, the mean of 5 runs; None is fine-tuning.
_TABLE_7 = {
    None: 96.4,
    "embeddings": 91.0,
    "second_to_last": 95.6,
    "last": 94.9,
    "sum_last_four": 95.9,
    "concat_last_four": 96.1,
    "sum_all": 95.5,
}
_TABLE_7_SEEDS = 5


# A table of runs that differ in one thing, and the runs that need no other table.
Ablation = tuple[ReportSection, Sequence[RunFacts]]


def find_ablations(facts: Sequence[RunFacts]) -> list[Ablation]:
    """The tables that some of the runs make; there may be none."""
    tuned = [each for each in facts if each.origin.objective and not each.features]
    complete = [each for each in tuned if each.origin.complete]
    return [
        *_pretraining_tasks(complete),
        *_model_sizes(complete),
        *_training_steps(tuned),
        *_feature_based(facts),
    ]


def _pretraining_tasks(complete: Sequence[RunFacts]) -> Iterator[Ablation]:
    """Table 5: for each size, the objectives that it was pre-trained with, if there are several."""
    compared = [
        _last_of_each(runs, _pretraining_of)
        for runs in _groups(complete, lambda each: each.size)
        if len({each.origin.objective for each in runs}) > 1
    ]
    for runs in compared:
        columns = _columns_of(runs, _TABLE_5_COLUMNS)
        rows = [
            ReportRow((f"paper: {name}", *cells(of_column, columns)), True)
            for name, of_column in _TABLE_5.items()
        ]
        rows += [
            ReportRow((name, *_run_cells(columns, same))) for name, same in _by_pretraining(runs)
        ]
        size = "{} layers, {} wide, {} heads".format(*runs[0].size)
        note = f"The paper's models are BERT-base; ours have {size}"
        if any(each.encoder.attention == "side_by_side" for each in runs):
            note += ", and two directions side by side are two encoders of that size"
        title = f"Pre-training tasks{f': {size}' if len(compared) > 1 else ''} (table 5)"
        yield _ablation(title, ["pre-trained with"], columns, rows, f"{note}.", runs)


def _model_sizes(complete: Sequence[RunFacts]) -> Iterator[Ablation]:
    """Table 6: masked LMs of several sizes, pre-trained for the same number of steps.

    Those without next sentence prediction have a table of their own.
    """
    masked = [each for each in complete if each.origin.objective in (of.BERT, of.NO_NSP)]
    for runs in _groups(masked, lambda each: (each.origin.objective, each.origin.steps)):
        sizes = {
            _column_of(same[0]): len({each.size for each in same})
            for same in _groups(runs, _column_of)
        }
        # A benchmark that the paper does not have is shown if several sizes ran on it.
        shared = [e for e in runs if _column_of(e) in _TABLE_6_COLUMNS or sizes[_column_of(e)] > 1]
        shared = _last_of_each(shared, lambda each: (each.size, each.origin.folder))
        if len({each.size for each in shared}) > 1:
            yield _model_size(shared)


def _model_size(runs: Sequence[RunFacts]) -> Ablation:
    columns = _columns_of(runs, _TABLE_6_COLUMNS)
    rows = []
    for size, (perplexity, *values) in _TABLE_6.items():
        papers = cells(dict(zip(_TABLE_6_COLUMNS, values, strict=True)), columns)
        rows.append(ReportRow(("paper", *map(str, size), f"{perplexity:.2f}", *papers), True))
    by_size = _groups(runs, lambda each: each.size)
    in_order: list[RunFacts] = []
    for of_size in sorted(by_size, key=lambda same: _block_weights(same[0])):
        for name, same in _by_folder(of_size):
            known = same[0].origin.perplexity
            shown = "" if known is None else f"{known:.2f}"
            ours = (*map(str, same[0].size), shown, *_run_cells(columns, same))
            rows.append(ReportRow((f"ours{name}", *ours)))
            in_order += same
    lines = [
        _line(column.heading, column, in_order, lambda each: _block_weights(each) / 1e6)
        for column in columns
    ]
    drawn = [(name, points) for name, points in lines if len(points) > 1]
    axis = "millions of weights in the blocks"
    objective = "" if runs[0].origin.objective == of.BERT else f", {of.NO_NSP}"
    return _ablation(
        f"Model size{objective} (table 6)",
        ["", "layers", "width", "heads", "perplexity"],
        columns,
        rows,
        "Perplexity is measured on held-out text with the masked language model.",
        runs,
        draw_lines(drawn, axis, logarithmic=True) if drawn else None,
    )


def _block_weights(facts: RunFacts) -> int:
    sizes = facts.encoder
    block = 4 * sizes.hidden_size**2 + 2 * sizes.hidden_size * sizes.intermediate_size
    return sizes.num_hidden_layers * block


def _training_steps(tuned: Sequence[RunFacts]) -> Iterator[Ablation]:
    """Figure 4: for each size, runs that started before the end of their pre-training."""

    def key(facts: RunFacts) -> object:
        return _pretraining_of(facts), _column_of(facts)

    for runs in _groups(tuned, lambda each: each.size):
        early = {key(each) for each in runs if not each.origin.complete}
        runs = [each for each in runs if key(each) in early]
        if runs:
            yield _steps(_last_of_each(runs, lambda e: (_pretraining_of(e), e.origin.steps)))


def _steps(runs: Sequence[RunFacts]) -> Ablation:
    def steps(facts: RunFacts) -> int:
        return facts.origin.steps or 0

    columns = _columns_of(runs)
    rows, lines = [], []
    for name, same in _by_pretraining(runs):
        known = sorted((each for each in same if each.origin.steps is not None), key=steps)
        for at_step in _groups(known, steps):
            rows.append(ReportRow((name, f"{steps(at_step[0]):,}", *_run_cells(columns, at_step))))
        lines += [_line(f"{name}: {c.heading}", c, known, steps) for c in columns]
    return _ablation(
        "Training steps (figure 4)",
        ["pre-trained with", "steps"],
        columns,
        rows,
        "In the paper, the masked LM starts below the left-to-right model, overtakes it "
        "almost at once, and gains 1.0 point of MNLI between 500,000 and 1,000,000 steps.",
        runs,
        draw_lines([(name, points) for name, points in lines if points], "steps of pre-training"),
    )


def _feature_based(facts: Sequence[RunFacts]) -> Iterator[Ablation]:
    """Table 7: taggers on the activations of a frozen encoder, compared with fine-tuning.

    There is a table for each benchmark and checkpoint with such a tagger.
    """

    def start(facts: RunFacts) -> object:
        return facts.benchmark.title, facts.config.source

    for taggers in _groups([each for each in facts if each.features], start):
        tuned = [e for e in facts if not e.features and start(e) == start(taggers[0])]
        runs = _last_of_each([*tuned, *taggers], lambda each: each.features)
        known = {each.features: each for each in runs}
        column = _column_of(runs[0])
        names = {
            features: "fine-tuned, all layers" if features is None else features.replace("_", " ")
            for features in _TABLE_7
        }
        rows = [
            ReportRow((f"paper: {names[features]}", f"{f1:.1f}", str(_TABLE_7_SEEDS)), True)
            for features, f1 in _TABLE_7.items()
        ]
        rows += [
            ReportRow((name, known[features].shown(column.metric), str(known[features].seeds)))
            for features, name in names.items()
            if features in known
        ]
        note = (
            "The paper reports dev F1 on CoNLL-2003 with BERT-base; our runs started from "
            f"{runs[0].start}."
        )
        section = ReportSection(
            "Feature-based approach (table 7)",
            ("what is read", column.heading, "seeds"),
            tuple(rows),
            (note, *training_parts(runs)),
        )
        # The fine-tuned runs have the table of their benchmark too.
        yield section, [each for each in runs if each.features]


def _ablation(
    title: str,
    first: Sequence[str],
    columns: Sequence[PaperColumn],
    rows: Sequence[ReportRow],
    note: str,
    runs: Sequence[RunFacts],
    picture: bytes | None = None,
) -> Ablation:
    """A table with columns for benchmarks, after the columns named in `first`."""
    headings = (*first, *(column.heading for column in columns))
    notes = (note, *training_parts(runs))
    return ReportSection(title, headings, tuple(rows), notes, picture), runs


def _column_of(facts: RunFacts) -> PaperColumn:
    """The column of a run. Tables 5 and 6 give the accuracy on MRPC, table 1 its F1."""
    title = facts.benchmark.title
    return _MRPC if title == _MRPC.title else PaperColumn(title, facts.benchmark.metrics[0])


def _columns_of(runs: Sequence[RunFacts], papers: Sequence[PaperColumn] = ()) -> list[PaperColumn]:
    """The paper's columns, and the columns of the runs that the paper does not have."""
    return list(dict.fromkeys((*papers, *map(_column_of, runs))))


def _run_cells(columns: Sequence[PaperColumn], runs: Sequence[RunFacts]) -> list[str]:
    """A row of ours: the result of each run in its column."""
    known = {_column_of(each): each for each in runs}
    return [known[c].shown(c.metric) if c in known else "" for c in columns]


def _line(
    name: str, column: PaperColumn, runs: Sequence[RunFacts], x: Callable[[RunFacts], float]
) -> Line:
    """The results of the runs in a column, over `x`."""
    values = [(float(x(e)), e.value(column.metric)) for e in runs if _column_of(e) == column]
    return name, [(place, value) for place, value in values if value is not None]


def _groups(runs: Iterable[RunFacts], key: Callable[[RunFacts], object]) -> list[list[RunFacts]]:
    """Runs of the same key together, in the order in which the keys first come."""
    found: dict[object, list[RunFacts]] = {}
    for each in runs:
        found.setdefault(key(each), []).append(each)
    return list(found.values())


def _last_of_each(runs: Iterable[RunFacts], row: Callable[[RunFacts], object]) -> list[RunFacts]:
    """The last of several runs that would share a cell, since their row and benchmark are equal."""
    return list({(row(each), _column_of(each)): each for each in runs}.values())


def _pretraining_of(facts: RunFacts) -> tuple[str, Path | None]:
    """The pre-training that a run started from: its objective and its folder."""
    return facts.origin.objective, facts.origin.folder


def _by_pretraining(runs: Sequence[RunFacts]) -> list[tuple[str, list[RunFacts]]]:
    """The name and the runs of each pre-training, in the order of `OBJECTIVES`, others last.

    The name is the objective, and the folder too where several have the same objective.
    """
    order = {name: place for place, name in enumerate(of.OBJECTIVES)}
    objectives = dict.fromkeys(each.origin.objective for each in runs)
    return [
        (objective + name, same)
        for objective in sorted(objectives, key=lambda name: order.get(name, len(order)))
        for name, same in _by_folder([e for e in runs if e.origin.objective == objective])
    ]


def _by_folder(runs: Sequence[RunFacts]) -> list[tuple[str, list[RunFacts]]]:
    """The runs of each pre-training, after ": " and its name; after "" if there is only one."""
    found = _groups(runs, lambda each: each.origin.folder)
    if len(found) == 1:
        return [("", found[0])]
    names = distinct_names([same[0].origin.folder or "" for same in found])
    return [(f": {name}", same) for name, same in zip(names, found, strict=True)]
