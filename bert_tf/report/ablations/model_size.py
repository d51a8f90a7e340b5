"""Table 6: a masked LM in several sizes, pre-trained for as many steps."""

from collections.abc import Sequence

from bert_tf.report import origin
from bert_tf.report.ablations.cells import (
    MNLI,
    MRPC,
    SST2,
    Column,
    column_of,
    columns_of,
    paper_cells,
    run_cells,
)
from bert_tf.report.ablations.grouping import (
    Ablation,
    by_folder,
    fine_tuned,
    groups,
    last_of_each,
    size_of,
)
from bert_tf.report.page import Row, Section
from bert_tf.report.plots import Line, draw_lines
from bert_tf.report.runs import RunFacts, TracedFacts, training_parts

_COLUMNS = (MNLI, MRPC, SST2)
# layers, width, heads -> perplexity, then the tasks.
_PAPER = {
    (3, 768, 12): (5.84, 77.9, 79.8, 88.4),
    (6, 768, 3): (5.24, 80.6, 82.2, 90.7),
    (6, 768, 12): (4.68, 81.9, 84.8, 91.3),
    (12, 768, 12): (3.99, 84.4, 86.7, 92.9),
    (12, 1024, 16): (3.54, 85.7, 86.9, 93.3),
    (24, 1024, 16): (3.23, 86.6, 87.8, 93.7),
}


def find(facts: Sequence[RunFacts]) -> list[Ablation]:
    """A table for each number of steps after which a masked LM is there in several sizes.

    Those without next sentence prediction have one of their own.
    """
    complete = [each for each in fine_tuned(facts) if each.origin.complete]
    masked = [each for each in complete if each.origin.objective in (origin.BERT, origin.NO_NSP)]
    found = []
    for runs in groups(masked, lambda each: (each.origin.objective, each.origin.steps)):
        runs = last_of_each(
            _of_several_sizes(runs), lambda each: (size_of(each), each.origin.folder)
        )
        if len({size_of(each) for each in runs}) > 1:
            found.append(Ablation(_section(runs), runs))
    return found


def _of_several_sizes(runs: Sequence[TracedFacts]) -> list[TracedFacts]:
    """The runs on the paper's benchmarks, and on others that more than one size has run on."""
    sizes: dict[Column, set] = {}
    for each in runs:
        sizes.setdefault(column_of(each), set()).add(size_of(each))
    return [each for each in runs if column_of(each) in _COLUMNS or len(sizes[column_of(each)]) > 1]


def _section(runs: Sequence[TracedFacts]) -> Section:
    columns = columns_of(runs, _COLUMNS)
    rows = [
        _row("paper", size, perplexity, paper_cells(columns, _COLUMNS, values), quoted=True)
        for size, (perplexity, *values) in _PAPER.items()
    ]
    lines = {column: Line(column.heading, []) for column in columns}
    for of_size in sorted(groups(runs, size_of), key=lambda same: _weights(same[0])):
        for name, same in by_folder(of_size):
            perplexity, cells = same[0].origin.perplexity, run_cells(columns, same)
            rows.append(_row(f"ours{name}", size_of(same[0]), perplexity, cells))
            for each in same:
                column = column_of(each)
                if (value := each.value(column.metric)) is not None:
                    lines[column].points.append((_weights(each) / 1e6, value))
    drawn = [line for line in lines.values() if len(line.points) > 1]
    objective = "" if runs[0].origin.objective == origin.BERT else f", {origin.NO_NSP}"
    return Section(
        f"Model size{objective} (table 6)",
        ("", "layers", "width", "heads", "perplexity", *(column.heading for column in columns)),
        tuple(rows),
        (
            "Perplexity is measured on held-out text with the masked language model.",
            *training_parts(runs),
        ),
        draw_lines(drawn, "millions of weights in the blocks", logarithmic=True) if drawn else None,
    )


def _row(
    name: str,
    size: Sequence[int],
    perplexity: float | None,
    cells: Sequence[str],
    quoted: bool = False,
) -> Row:
    shown = "" if perplexity is None else f"{perplexity:.2f}"
    return Row((name, *map(str, size), shown, *cells), quoted)


def _weights(facts: RunFacts) -> int:
    """Weights of the blocks' kernels."""
    sizes = facts.encoder
    block = 4 * sizes.hidden_size**2 + 2 * sizes.hidden_size * sizes.intermediate_size
    return sizes.num_hidden_layers * block
