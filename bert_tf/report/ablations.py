"""The paper's ablations, made of runs that differ in one thing: tables 5, 6 and 7, and figure 4.

Which runs belong together follows from what they are: from their sizes, from the pre-training that
they started from, and from the activations that they read.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bert_tf.report import origin
from bert_tf.report.lines import Line, draw_lines
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

_TABLE_5 = {
    origin.BERT: (84.4, 88.4, 86.7, 92.7, 88.5),
    origin.NO_NSP: (83.9, 84.9, 86.5, 92.6, 87.9),
    origin.LEFT_TO_RIGHT: (82.1, 84.3, 77.5, 92.1, 77.8),
    origin.LEFT_TO_RIGHT + " + BiLSTM": (82.1, 84.1, 75.7, 91.6, 84.9),
}
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


class Ablations(NamedTuple):
    """What was found.

    Attributes:
        sections: one for every group of runs that makes one of the tables.
        shown: the runs that need no other table.
    """

    sections: list[Section]
    shown: list[RunFacts]


def find_ablations(facts: Sequence[RunFacts]) -> Ablations:
    """The tables that some of the runs make; there may be none."""
    grown = [each for each in facts if each.origin is not None]
    complete = [each for each in grown if each.origin.complete]
    found, shown = [], []
    for runs in _groups(complete, _size):
        if len({each.origin.objective for each in runs}) > 1:
            found.append(_pretraining_tasks(runs))
            shown += runs
    of_bert = [each for each in complete if each.origin.objective == origin.BERT]
    for runs in _groups(of_bert, lambda each: each.origin.steps):
        if len({_size(each) for each in runs}) > 1:
            found.append(_sizes(runs))
            shown += runs
    for runs in _groups(grown, _size):
        partial = {(e.origin.objective, _column(e)) for e in runs if not e.origin.complete}
        compared = [e for e in runs if (e.origin.objective, _column(e)) in partial]
        if compared:
            found.append(_steps(compared))
            shown += compared
    featured = [each for each in facts if _features(each)]
    for runs in _groups(featured, _start):
        tuned = [e for e in facts if not _features(e) and _start(e) == _start(runs[0])]
        found.append(_feature_based([*tuned, *runs]))
        shown += runs
    return Ablations(found, shown)


def _pretraining_tasks(runs: Sequence[RunFacts]) -> Section:
    columns = _columns(runs, (_MNLI, _QNLI, _MRPC, _SST2, _SQUAD))
    rows = [
        Row(
            ("paper: " + name, *_cells(columns, (_MNLI, _QNLI, _MRPC, _SST2, _SQUAD), values)), True
        )
        for name, values in _TABLE_5.items()
    ]
    rows += [
        Row((name, *_shown([e for e in runs if e.origin.objective == name], columns)))
        for name in _objectives(runs)
    ]
    layers, width, heads = _size(runs[0])
    note = f"The paper's are of BERT-base; ours have {layers} layers, {width} wide, {heads} heads."
    return Section(
        "Pre-training tasks (table 5)",
        ("pre-trained with", *(column.heading for column in columns)),
        tuple(rows),
        (note,),
    )


def _sizes(runs: Sequence[RunFacts]) -> Section:
    columns = _columns(runs, (_MNLI, _MRPC, _SST2))
    rows = [
        Row(
            (
                "paper",
                *map(str, size),
                f"{perplexity:.2f}",
                *_cells(columns, (_MNLI, _MRPC, _SST2), values),
            ),
            True,
        )
        for size, (perplexity, *values) in _TABLE_6.items()
    ]
    lines: dict[_Column, Line] = {column: Line(column.heading, [], []) for column in columns}
    for same in sorted(_groups(runs, _size), key=lambda same: _parameters(same[0])):
        perplexity = same[0].origin.perplexity
        rows.append(
            Row(
                (
                    "ours",
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
        ("Perplexity is that of the masked language model on held-out text.",),
        draw_lines(drawn, "millions of weights in the blocks", logarithmic=True) if drawn else None,
    )


def _steps(runs: Sequence[RunFacts]) -> Section:
    columns = _columns(runs, ())
    steps = sorted({each.origin.steps for each in runs})
    rows, lines = [], []
    for objective in _objectives(runs):
        same = [each for each in runs if each.origin.objective == objective]
        for step in steps:
            at_step = [each for each in same if each.origin.steps == step]
            if at_step:
                rows.append(Row((objective, f"{step:,}", *_shown(at_step, columns))))
        for column in columns:
            line = Line(f"{objective}: {column.heading}", [], [])
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
        ),
        draw_lines(lines, "steps of pre-training"),
    )


def _feature_based(runs: Sequence[RunFacts]) -> Section:
    columns = _columns(runs, ())
    rows = [
        Row((f"paper: {_said(name)}", f"{f1:.1f}", *[""] * (len(columns) - 1)), True)
        for name, f1 in _TABLE_7.items()
    ]
    for name in _TABLE_7:
        same = [each for each in runs if _features(each) == name]
        if same:
            rows.append(Row((_said(name), *_shown(same, columns))))
    return Section(
        "Feature-based approach (table 7)",
        ("what is read", *(column.heading for column in columns)),
        tuple(rows),
        ("The paper's figures are dev F1 on CoNLL-2003 with BERT-base.",),
    )


def _groups(runs: Iterable[RunFacts], key: Callable[[RunFacts], object]) -> list[list[RunFacts]]:
    """Runs of the same key together, in the order in which the keys first come."""
    groups: dict[object, list[RunFacts]] = {}
    for each in runs:
        groups.setdefault(key(each), []).append(each)
    return list(groups.values())


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
    """The result of the last run on each benchmark."""
    known = {_column(each): each for each in runs}
    return [known[c].shown(c.metric) if c in known else "" for c in columns]


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
