"""The paper's ablations, made of runs that differ in one thing: tables 5, 6 and 7, and figure 4.

Which runs belong together follows from what they are: from their sizes, from the pre-training that
they started from, and from the activations that they read.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf.report import origin
from bert_tf.report.lines import Line, draw_lines
from bert_tf.report.naming import distinct_names
from bert_tf.report.notes import training_parts
from bert_tf.report.page import Row, Section
from bert_tf.report.runs import RunFacts


class _Column(NamedTuple):
    """One benchmark of a table."""

    title: str
    metric: str

    @property
    def heading(self) -> str:
        return f"{self.title.removeprefix('GLUE: ')} ({self.metric})"


_MNLI, _QNLI = _Column("GLUE: MNLI", "accuracy"), _Column("GLUE: QNLI", "accuracy")
_MRPC, _SST2 = _Column("GLUE: MRPC", "accuracy"), _Column("GLUE: SST-2", "accuracy")
_SQUAD = _Column("SQuAD v1.1", "f1")

_TABLE_5_COLUMNS = (_MNLI, _QNLI, _MRPC, _SST2, _SQUAD)
_TABLE_5 = {
    origin.BERT: (84.4, 88.4, 86.7, 92.7, 88.5),
    origin.NO_NSP: (83.9, 84.9, 86.5, 92.6, 87.9),
    origin.LEFT_TO_RIGHT: (82.1, 84.3, 77.5, 92.1, 77.8),
    origin.LEFT_TO_RIGHT + origin.BILSTM: (82.1, 84.1, 75.7, 91.6, 84.9),
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
# None is fine-tuning.
_TABLE_7 = {
    None: 96.4,
    "embeddings": 91.0,
    "second_to_last": 95.6,
    "last": 94.9,
    "sum_last_four": 95.9,
    "concat_last_four": 96.1,
    "sum_all": 95.5,
}
# Each is a mean of so many runs, as its caption says.
_TABLE_7_SEEDS = 5


class Ablations(NamedTuple):
    """What was found.

    Attributes:
        sections: one for every group of runs that makes one of the tables.
        shown: the runs that need no other table, since one of these has their result.
    """

    sections: list[Section]
    shown: list[RunFacts]


def find_ablations(facts: Sequence[RunFacts]) -> Ablations:
    """The tables that some of the runs make; there may be none."""
    # What a frozen encoder's activations give is no result of fine-tuning.
    grown = [each for each in facts if each.origin is not None and not _features(each)]
    complete = [each for each in grown if each.origin.complete]
    found, shown = [], []
    for runs in _groups(complete, _size):
        if len({each.origin.objective for each in runs}) > 1:
            runs = _last(runs, _pretraining)
            found.append(_pretraining_tasks(runs))
            shown += runs
    of_bert = [each for each in complete if each.origin.objective == origin.BERT]
    for runs in _groups(of_bert, lambda each: each.origin.steps):
        runs = _last(_of_several_sizes(runs), lambda each: (_size(each), each.origin.folder))
        if len({_size(each) for each in runs}) > 1:
            found.append(_sizes(runs))
            shown += runs
    for runs in _groups(grown, _size):
        partial = {(_pretraining(e), _column(e)) for e in runs if not e.origin.complete}
        compared = [e for e in runs if (_pretraining(e), _column(e)) in partial]
        if compared:
            compared = _last(compared, lambda each: (_pretraining(each), each.origin.steps))
            found.append(_steps(compared))
            shown += compared
    featured = [each for each in facts if _features(each)]
    for runs in _groups(featured, _start):
        tuned = [e for e in facts if not _features(e) and _start(e) == _start(runs[0])]
        runs = _last([*tuned, *runs], _features)
        found.append(_feature_based(runs))
        # What is fine-tuned has a table of its benchmark besides.
        shown += [each for each in runs if _features(each)]
    return Ablations(found, shown)


def _pretraining_tasks(runs: Sequence[RunFacts]) -> Section:
    columns = _columns(runs, _TABLE_5_COLUMNS)
    rows = [
        Row(("paper: " + name, *_cells(columns, _TABLE_5_COLUMNS, values)), True)
        for name, values in _TABLE_5.items()
    ]
    rows += [Row((name, *_shown(same, columns))) for name, same in _by_pretraining(runs)]
    layers, width, heads = _size(runs[0])
    note = f"The paper's are of BERT-base; ours have {layers} layers, {width} wide, {heads} heads"
    if any(each.encoder.attention == "side_by_side" for each in runs):
        note += ", and two directions side by side are two encoders of that size"
    return Section(
        "Pre-training tasks (table 5)",
        ("pre-trained with", *(column.heading for column in columns)),
        tuple(rows),
        (f"{note}.", *training_parts(runs)),
    )


def _of_several_sizes(runs: Sequence[RunFacts]) -> list[RunFacts]:
    """The runs on the paper's benchmarks, and on others that more than one size has run on."""
    sizes: dict[_Column, set] = {}
    for each in runs:
        sizes.setdefault(_column(each), set()).add(_size(each))
    return [
        each for each in runs if _column(each) in _TABLE_6_COLUMNS or len(sizes[_column(each)]) > 1
    ]


def _sizes(runs: Sequence[RunFacts]) -> Section:
    columns = _columns(runs, _TABLE_6_COLUMNS)
    rows = [
        Row(
            (
                "paper",
                *map(str, size),
                f"{perplexity:.2f}",
                *_cells(columns, _TABLE_6_COLUMNS, values),
            ),
            True,
        )
        for size, (perplexity, *values) in _TABLE_6.items()
    ]
    lines: dict[_Column, Line] = {column: Line(column.heading, [], []) for column in columns}
    for of_size in sorted(_groups(runs, _size), key=lambda same: _parameters(same[0])):
        for name, same in _by_folder(of_size):
            perplexity = same[0].origin.perplexity
            rows.append(
                Row(
                    (
                        f"ours{name}",
                        *map(str, _size(same[0])),
                        "" if perplexity is None else f"{perplexity:.2f}",
                        *_shown(same, columns),
                    )
                )
            )
            for each in same:
                value = each.value(_column(each).metric)
                if value is not None:
                    lines[_column(each)].add(_parameters(each) / 1e6, value)
    drawn = [line for line in lines.values() if len(line.x) > 1]
    return Section(
        "Model size (table 6)",
        ("", "layers", "width", "heads", "perplexity", *(column.heading for column in columns)),
        tuple(rows),
        (
            "Perplexity is that of the masked language model on held-out text.",
            *training_parts(runs),
        ),
        draw_lines(drawn, "millions of weights in the blocks", logarithmic=True) if drawn else None,
    )


def _steps(runs: Sequence[RunFacts]) -> Section:
    columns = _columns(runs, ())
    rows, lines = [], []
    for name, same in _by_pretraining(runs):
        for step in sorted({each.origin.steps for each in same}):
            at_step = [each for each in same if each.origin.steps == step]
            rows.append(Row((name, f"{step:,}", *_shown(at_step, columns))))
        for column in columns:
            line = Line(f"{name}: {column.heading}", [], [])
            for each in sorted(same, key=lambda each: each.origin.steps):
                value = each.value(column.metric)
                if _column(each) == column and value is not None:
                    line.add(each.origin.steps, value)
            lines += [line] if line.x else []
    return Section(
        "Training steps (figure 4)",
        ("pre-trained with", "steps", *(column.heading for column in columns)),
        tuple(rows),
        (
            "In the paper the masked LM is behind the left-to-right model at first, passes it "
            "almost at once, and gains 1.0 point of MNLI between 500,000 and 1,000,000 steps.",
            *training_parts(runs),
        ),
        draw_lines(lines, "steps of pre-training"),
    )


def _feature_based(runs: Sequence[RunFacts]) -> Section:
    column = _column(runs[0])
    rows = [
        Row((f"paper: {_said(name)}", f"{f1:.1f}", str(_TABLE_7_SEEDS)), True)
        for name, f1 in _TABLE_7.items()
    ]
    known = {_features(each): each for each in runs}
    rows += [
        Row((_said(name), known[name].shown(column.metric), str(known[name].seeds)))
        for name in _TABLE_7
        if name in known
    ]
    return Section(
        "Feature-based approach (table 7)",
        ("what is read", column.heading, "seeds"),
        tuple(rows),
        (
            "The paper's figures are dev F1 on CoNLL-2003 with BERT-base; ours started from "
            f"{runs[0].start}.",
            *training_parts(runs),
        ),
    )


def _groups(runs: Iterable[RunFacts], key: Callable[[RunFacts], object]) -> list[list[RunFacts]]:
    """Runs of the same key together, in the order in which the keys first come."""
    groups: dict[object, list[RunFacts]] = {}
    for each in runs:
        groups.setdefault(key(each), []).append(each)
    return list(groups.values())


def _last(runs: Iterable[RunFacts], row: Callable[[RunFacts], object]) -> list[RunFacts]:
    """Of several runs of one row and benchmark, which would share a cell, the last."""
    return list({(row(each), _column(each)): each for each in runs}.values())


def _by_pretraining(runs: Sequence[RunFacts]) -> list[tuple[str, list[RunFacts]]]:
    """The runs of each pre-training with its objective, and its name where two have the same."""
    return [
        (objective + name, same)
        for objective in _objectives(runs)
        for name, same in _by_folder([e for e in runs if e.origin.objective == objective])
    ]


def _by_folder(runs: Sequence[RunFacts]) -> list[tuple[str, list[RunFacts]]]:
    """The runs of each pre-training with ": " and its name, or with nothing where it is alone."""
    groups = _groups(runs, lambda each: each.origin.folder)
    if len(groups) == 1:
        return [("", groups[0])]
    names = distinct_names([same[0].origin.folder for same in groups])
    return [(f": {name}", same) for name, same in zip(names, groups, strict=True)]


def _objectives(runs: Sequence[RunFacts]) -> list[str]:
    """What the runs' pre-trainings were, in the order of `OBJECTIVES`, and others behind."""
    order = {name: place for place, name in enumerate(origin.OBJECTIVES)}
    found = dict.fromkeys(each.origin.objective for each in runs)
    return sorted(found, key=lambda name: order.get(name, len(order)))


def _columns(runs: Sequence[RunFacts], papers: Sequence[_Column]) -> list[_Column]:
    """The paper's columns, and those of the runs that it does not have."""
    return list(dict.fromkeys((*papers, *map(_column, runs))))


def _column(facts: RunFacts) -> _Column:
    """Table 5 and 6 give the accuracy on MRPC, table 1 its F1."""
    title = facts.benchmark.title
    return _MRPC if title == _MRPC.title else _Column(title, facts.benchmark.metrics[0])


def _cells(
    columns: Sequence[_Column], given: Sequence[_Column], values: Sequence[float]
) -> list[str]:
    known = dict(zip(given, values, strict=True))
    return [f"{known[column]:.1f}" if column in known else "" for column in columns]


def _shown(runs: Sequence[RunFacts], columns: Sequence[_Column]) -> list[str]:
    """The result on each benchmark."""
    known = {_column(each): each for each in runs}
    return [known[c].shown(c.metric) if c in known else "" for c in columns]


def _pretraining(facts: RunFacts) -> tuple[str, Path | None]:
    return facts.origin.objective, facts.origin.folder


def _size(facts: RunFacts) -> tuple[int, int, int]:
    sizes = facts.encoder
    return sizes.num_hidden_layers, sizes.hidden_size, sizes.num_attention_heads


def _parameters(facts: RunFacts) -> int:
    """Weights of the blocks' kernels."""
    sizes = facts.encoder
    block = 4 * sizes.hidden_size**2 + 2 * sizes.hidden_size * sizes.intermediate_size
    return sizes.num_hidden_layers * block


def _features(facts: RunFacts) -> str | None:
    return getattr(facts.config.model, "features", None)


def _start(facts: RunFacts) -> tuple[str, str | None]:
    return facts.benchmark.title, facts.config.init.checkpoint


def _said(features: str | None) -> str:
    return "fine-tuned, all layers" if features is None else features.replace("_", " ")
