"""Figure 4: what is fine-tuned from several steps of one pre-training."""

from collections.abc import Sequence

from bert_tf.report.ablations.cells import column_of, columns_of, run_cells
from bert_tf.report.ablations.grouping import (
    Ablation,
    by_pretraining,
    fine_tuned,
    groups,
    last_of_each,
    pretraining_of,
    size_of,
)
from bert_tf.report.page import Row, Section
from bert_tf.report.plots import Line, draw_lines
from bert_tf.report.runs import RunFacts, TracedFacts, training_parts


def find(facts: Sequence[RunFacts]) -> list[Ablation]:
    """One for each size of which there are runs that started before their pre-training's end."""
    found = []
    for runs in groups(fine_tuned(facts), size_of):
        early = {(pretraining_of(e), column_of(e)) for e in runs if not e.origin.complete}
        compared = [e for e in runs if (pretraining_of(e), column_of(e)) in early]
        if compared:
            compared = last_of_each(
                compared, lambda each: (pretraining_of(each), each.origin.steps)
            )
            found.append(Ablation(_section(compared), compared))
    return found


def _section(runs: Sequence[TracedFacts]) -> Section:
    columns = columns_of(runs, ())
    rows, lines = [], []
    for name, same in by_pretraining(runs):
        known = sorted((each for each in same if each.origin.steps is not None), key=_steps)
        for at_step in groups(known, _steps):
            rows.append(Row((name, f"{_steps(at_step[0]):,}", *run_cells(columns, at_step))))
        for column in columns:
            points = [
                (float(_steps(each)), value)
                for each in known
                if column_of(each) == column and (value := each.value(column.metric)) is not None
            ]
            lines += [Line(f"{name}: {column.heading}", points)] if points else []
    return Section(
        "Training steps (figure 4)",
        ("pre-trained with", "steps", *(column.heading for column in columns)),
        tuple(rows),
        (
            "In the paper, the masked LM starts below the left-to-right model, overtakes it "
            "almost at once, and gains 1.0 point of MNLI between 500,000 and 1,000,000 steps.",
            *training_parts(runs),
        ),
        draw_lines(lines, "steps of pre-training"),
    )


def _steps(facts: TracedFacts) -> int:
    return facts.origin.steps or 0
