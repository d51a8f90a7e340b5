"""Table 7: a tagger on a frozen encoder's activations, compared with fine-tuning."""

from collections.abc import Sequence

from bert_tf.report.ablations.cells import column_of
from bert_tf.report.ablations.grouping import Ablation, features_of, groups, last_of_each
from bert_tf.report.page import Row, Section
from bert_tf.report.runs import RunFacts, training_parts

# None is fine-tuning.
_PAPER = {
    None: 96.4,
    "embeddings": 91.0,
    "second_to_last": 95.6,
    "last": 94.9,
    "sum_last_four": 95.9,
    "concat_last_four": 96.1,
    "sum_all": 95.5,
}
# Each is a mean of so many runs, as its caption says.
_PAPER_SEEDS = 5


def find(facts: Sequence[RunFacts]) -> list[Ablation]:
    """One for each benchmark and checkpoint with such a tagger."""
    found = []
    for runs in groups([each for each in facts if features_of(each)], _start):
        tuned = [e for e in facts if not features_of(e) and _start(e) == _start(runs[0])]
        runs = last_of_each([*tuned, *runs], features_of)
        # The fine-tuned runs also have a table of their benchmark.
        found.append(Ablation(_section(runs), [each for each in runs if features_of(each)]))
    return found


def _section(runs: Sequence[RunFacts]) -> Section:
    column = column_of(runs[0])
    rows = [
        Row((f"paper: {_said(name)}", f"{f1:.1f}", str(_PAPER_SEEDS)), True)
        for name, f1 in _PAPER.items()
    ]
    known = {features_of(each): each for each in runs}
    rows += [
        Row((_said(name), known[name].shown(column.metric), str(known[name].seeds)))
        for name in _PAPER
        if name in known
    ]
    return Section(
        "Feature-based approach (table 7)",
        ("what is read", column.heading, "seeds"),
        tuple(rows),
        (
            "The paper reports dev F1 on CoNLL-2003 with BERT-base; our runs started from "
            f"{runs[0].start}.",
            *training_parts(runs),
        ),
    )


def _start(facts: RunFacts) -> tuple[str, str | None]:
    return facts.benchmark.title, facts.config.source


def _said(features: str | None) -> str:
    return "fine-tuned, all layers" if features is None else features.replace("_", " ")
