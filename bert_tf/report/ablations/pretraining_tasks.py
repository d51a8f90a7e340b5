"""Table 5: the same sizes, pre-trained with different objectives."""

from collections.abc import Sequence

from bert_tf.report import origin
from bert_tf.report.ablations.cells import (
    MNLI,
    MRPC,
    QNLI,
    SQUAD,
    SST2,
    columns_of,
    paper_cells,
    run_cells,
)
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
from bert_tf.report.runs import RunFacts, TracedFacts, training_parts

_COLUMNS = (MNLI, QNLI, MRPC, SST2, SQUAD)
_PAPER = {
    origin.BERT: (84.4, 88.4, 86.7, 92.7, 88.5),
    origin.NO_NSP: (83.9, 84.9, 86.5, 92.6, 87.9),
    origin.LEFT_TO_RIGHT: (82.1, 84.3, 77.5, 92.1, 77.8),
    origin.LEFT_TO_RIGHT + origin.BILSTM: (82.1, 84.1, 75.7, 91.6, 84.9),
}


def find(facts: Sequence[RunFacts]) -> list[Ablation]:
    """A table for each size of which there are several objectives, pre-trained to their end."""
    complete = [each for each in fine_tuned(facts) if each.origin.complete]
    compared = [
        last_of_each(runs, pretraining_of)
        for runs in groups(complete, size_of)
        if len({each.origin.objective for each in runs}) > 1
    ]
    return [Ablation(_section(runs, len(compared) > 1), runs) for runs in compared]


def _section(runs: Sequence[TracedFacts], one_of_several: bool) -> Section:
    columns = columns_of(runs, _COLUMNS)
    rows = [
        Row(("paper: " + name, *paper_cells(columns, _COLUMNS, values)), True)
        for name, values in _PAPER.items()
    ]
    rows += [Row((name, *run_cells(columns, same))) for name, same in by_pretraining(runs)]
    layers, width, heads = size_of(runs[0])
    size = f"{layers} layers, {width} wide, {heads} heads"
    note = f"The paper's models are BERT-base; ours have {size}"
    if any(each.encoder.attention == "side_by_side" for each in runs):
        note += ", and two directions side by side are two encoders of that size"
    which = f": {size}" if one_of_several else ""
    return Section(
        f"Pre-training tasks{which} (table 5)",
        ("pre-trained with", *(column.heading for column in columns)),
        tuple(rows),
        (f"{note}.", *training_parts(runs)),
    )
