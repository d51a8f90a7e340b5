"""What is said below a table, so that its lines are not taken for more alike than they are."""

from collections.abc import Sequence

from bert_tf.report.runs import RunFacts


def training_parts(facts: Sequence[RunFacts]) -> list[str]:
    """Which runs trained on the first rows of their data only; the paper's had all."""
    parts: dict[tuple[str, int], list[str]] = {}
    for each in facts:
        if each.train_rows is not None:
            parts.setdefault((each.benchmark.title, each.train_rows), []).append(each.name)
    return [
        f"{title}: trained on the first {rows:,} rows only, not on all: {', '.join(names)}."
        for (title, rows), names in parts.items()
    ]


def language_models(facts: Sequence[RunFacts]) -> list[str]:
    """Which pre-trainings are no masked language models, though their metrics are called so."""
    one_way = [
        each.name
        for each in facts
        if each.config.task == "pretraining" and each.encoder.attention != "bidirectional"
    ]
    if not one_way:
        return []
    return [
        "masked_lm_accuracy and perplexity of a masked language model are those of the masked "
        "tokens, seen from both sides; of one that reads in one direction they are those of every "
        f"token, seen from one side, and not to be compared with them: {', '.join(one_way)}."
    ]
